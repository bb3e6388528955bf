package authn

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustKeys(t *testing.T, keys ...Key) *Keys {
	t.Helper()
	k, err := NewKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func request(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/servers", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func TestAKeyHasItsPrefixItsLengthAndItsChecksum(t *testing.T) {
	seen := make(map[string]bool)
	for range 200 {
		key, hash := Generate()
		if len(key) != keyLength || !strings.HasPrefix(key, "cyk_") || damaged(key) {
			t.Fatalf("a bad key of %d characters", len(key))
		}
		if hash != Hash(key) || seen[key] {
			t.Fatal("the hash is not that of the key, or the key came twice")
		}
		seen[key] = true
	}
}

func TestAChangedCharacterIsSeenInTheChecksum(t *testing.T) {
	key, _ := Generate()
	for i := len(keyPrefix); i < len(key); i++ {
		changed := []byte(key)
		if changed[i]++; changed[i] == '_' { // it would have the format of another kind of key
			changed[i]++
		}
		if !damaged(string(changed)) {
			t.Errorf("a change at character %d is not seen", i)
		}
	}
	if !damaged(key[:len(key)-1]) || !damaged(key+"0") {
		t.Error("a wrong length is not seen")
	}
}

func TestAKnownKeyGivesItsPrincipalInEitherHeader(t *testing.T) {
	key, hash := Generate()
	k := mustKeys(t, Key{Name: "ci", Owner: "build team", Groups: []string{"dev"}, Hash: hash})
	want := schema.Principal{Name: "ci", Owner: "build team", Groups: []string{"dev"}}
	for name, r := range map[string]*http.Request{
		"bearer":      request("Authorization", "Bearer "+key),
		"lower case":  request("Authorization", "bearer  "+key+" "),
		"own header":  request("X-API-Key", key),
		"both, equal": request("Authorization", "Bearer "+key, "X-API-Key", key),
	} {
		got, err := k.Authenticate(r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestInvalidCredentialsAreRefusedWithoutEcho(t *testing.T) {
	key, hash := Generate()
	other, _ := Generate()
	expired, expiredHash := Generate()
	k := mustKeys(t, Key{Name: "ci", Hash: hash}, Key{Name: "old", Hash: expiredHash, Expires: time.Now().Add(-time.Hour)})
	for _, row := range []struct {
		name string
		r    *http.Request
		says string
	}{
		{"nothing", request(), "Send your API key"},
		{"basic", request("Authorization", "Basic "+key), "must be Bearer"},
		{"bearer without key", request("Authorization", "Bearer"), "must be Bearer"},
		{"empty header", request("X-API-Key", " "), "is empty"},
		{"unknown", request("X-API-Key", other), "front doors, approvers and workers have keys of their own"},
		{"unknown of another form", request("X-API-Key", "sk-secret-value"), "is unknown"},
		{"cut", request("X-API-Key", key[:30]), "damaged"},
		{"of another process", request("X-API-Key", "cyk_nWhwrsbw5IIp_fUtQM2VpduNw6qByLKbqo6nFcDanUJ500FHrg9"), "meant for this address"},
		{"expired", request("X-API-Key", expired), "expired on"},
		{"endless", request("X-API-Key", strings.Repeat("a", 4096)), "is unknown"},
		{"two", request("X-API-Key", key, "X-API-Key", other), "different API keys"},
		{"one in each header", request("Authorization", "Bearer "+key, "X-API-Key", other), "different API keys"},
		{"the hash itself", request("X-API-Key", hash), "is unknown"},
	} {
		row.r.RemoteAddr = "192.0.2.7:1" + row.name // an address that cannot be read: nothing is limited by another row
		k.failures = newFailures()
		_, err := k.Authenticate(row.r)
		if schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("%s: kind %q", row.name, schema.KindOf(err))
			continue
		}
		if !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %q does not say %q", row.name, err, row.says)
		}
		for _, secret := range []string{key, other, expired, hash, "sk-secret-value"} {
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), secret[:12]) {
				t.Errorf("%s: the error repeats the credential", row.name)
			}
		}
	}
}

func TestAKeyEndsWhenItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, hash := Generate()
		k := mustKeys(t, Key{Name: "ci", Hash: hash, Expires: time.Now().Add(time.Hour)})
		time.Sleep(59 * time.Minute)
		if _, err := k.Authenticate(request("X-API-Key", key)); err != nil {
			t.Errorf("before its end: %v", err)
		}
		time.Sleep(2 * time.Minute)
		if _, err := k.Authenticate(request("X-API-Key", key)); schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("after its end: %v", err)
		}
	})
}

func TestRemovedOrExpiredKeyIsInvalidForWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ci := Generate()
		_, ends := Generate()
		k := mustKeys(t, Key{Name: "ci", Hash: ci}, Key{Name: "ends", Hash: ends, Expires: time.Now().Add(time.Hour)})
		for name, valid := range map[string]bool{"ci": true, "ends": true, Local: true, "gone": false} {
			if err := k.Valid(name); (err == nil) != valid || err != nil && schema.KindOf(err) != schema.KindUnauthenticated {
				t.Errorf("%s: %v", name, err)
			}
		}
		time.Sleep(time.Hour)
		if err := k.Valid("ends"); schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("after its end: %v", err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = k.Valid("ci") }); n != 0 {
			t.Errorf("%v allocations for each call", n)
		}
	})
	if err := mustKeys(t).Valid("ci"); err != nil {
		t.Errorf("without keys: %v", err)
	}
}

func TestWithoutKeysPrincipalIsLocal(t *testing.T) {
	k := mustKeys(t)
	p, err := k.Authenticate(request("X-API-Key", "whatever"))
	if err != nil || p.Name != Local || k.Configured() {
		t.Errorf("%v, %v", p, err)
	}
}

func TestWrongKeysAreRateLimitedByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, hash := Generate()
		k := mustKeys(t, Key{Name: "ci", Hash: hash})
		try := func(address, key string) error {
			r := request("X-API-Key", key)
			r.RemoteAddr = address
			_, err := k.Authenticate(r)
			return err
		}
		for i := range failuresBurst {
			if err := try("[2001:db8::1]:1000", "wrong"); schema.KindOf(err) != schema.KindUnauthenticated {
				t.Fatalf("failure %d: %v", i, err)
			}
		}
		err := schema.AsError(try("[2001:db8::2]:1001", "wrong")) // another address of the same host
		if err.Kind != schema.KindQuota || err.RetryAfter <= 0 || err.RetryAfter > failuresEvery {
			t.Errorf("over the limit: %q after %s", err.Kind, err.RetryAfter)
		}
		if err := try("[2001:db8:0:1::1]:1000", "wrong"); schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("another network: %v", err)
		}
		if err := try("[2001:db8::1]:1002", key); err != nil {
			t.Errorf("the good key of a neighbour: %v", err)
		}
		time.Sleep(failuresEvery)
		if err := try("[2001:db8::1]:1003", "wrong"); schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("after a while: %v", err)
		}
	})
}

func TestTheTableOfFailuresStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFailures()
		for i := range addressesKept + 500 {
			f.count("10." + itoa(i>>16) + "." + itoa(i>>8&255) + "." + itoa(i&255) + ":1")
			time.Sleep(time.Microsecond)
		}
		if n := f.of.Len(); n > addressesKept {
			t.Errorf("%d addresses are kept", n)
		}
	})
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestAllInvalidKeysOfTheConfigAreReported(t *testing.T) {
	key, hash := Generate()
	_, err := NewKeys([]Key{
		{Hash: hash},
		{Name: "a", Hash: key},
		{Name: "b", Hash: "sha256:12"},
		{Name: "b", Hash: Hash("1")},
		{Name: "local", Hash: Hash("2")},
		{Name: "c", Hash: hash},
		{Name: "(other)", Hash: Hash("3")},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	got := strings.Split(err.Error(), "\n")
	want := []string{
		`API key 1 (""): the name must have 1 to 128 characters.`,
		`API key 2 ("a"): the hash is the key itself; create a new key, because this one is now in a file, and write the hash that callyard keys new prints.`,
		`API key 3 ("b"): the hash must be sha256: and 64 hex digits, as printed by callyard keys new.`,
		`API key 4 ("b"): the name "b" is used by another key; names must be unique.`,
		`API key 5 ("local"): the name "local" is reserved for callers without a key; choose another name.`,
		`API key 6 ("c"): the hash is also the hash of key ""; create a separate key for each.`,
		`API key 7 ("(other)"): the name "(other)" is reserved: usage reports add up the remaining callers under it; choose another name.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzNoHeaderGetsAPrincipalWithoutTheKey(f *testing.F) {
	key, hash := Generate()
	f.Add("Bearer x", "")
	f.Add("", "cyk_")
	f.Add("Bearer "+hash, hash)
	k, err := NewKeys([]Key{{Name: "ci", Hash: hash}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, authorization, apiKey string) {
		r := request("Authorization", authorization, "X-API-Key", apiKey)
		if strings.Contains(authorization+apiKey, key) {
			return
		}
		if p, err := k.Authenticate(r); err == nil {
			t.Errorf("principal %q", p.Name)
		}
	})
}

func TestKeysAreReplacedAsAWholeOrNotAtAll(t *testing.T) {
	first, firstHash := Generate()
	second, secondHash := Generate()
	k, err := NewKeys([]Key{{Name: "a", Hash: firstHash}})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Replace([]Key{{Name: "b", Hash: secondHash}, {Name: "b", Hash: "sha256:12"}}); err == nil {
		t.Error("faulty keys were taken")
	}
	knows := func(key string) bool {
		_, err := k.Authenticate(request("X-API-Key", key))
		return err == nil
	}
	if !knows(first) || knows(second) {
		t.Error("a refused replacement changed the keys")
	}
	if err := k.Replace([]Key{{Name: "b", Hash: secondHash}}); err != nil {
		t.Fatal(err)
	}
	if knows(first) || !knows(second) {
		t.Error("the keys were not replaced")
	}
	if _, ok := k.Find("a"); ok {
		t.Error("a removed key is still found")
	}
}

func TestARefusedKeyIsLoggedWithItsAddressAndWithoutTheKey(t *testing.T) {
	_, hash := Generate()
	k, err := NewKeys([]Key{{Name: "a", Hash: hash}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	k.LogTo(slog.New(slog.NewTextHandler(&out, nil)))
	wrong, _ := Generate()
	for range 3 * failuresBurst {
		if _, err := k.Authenticate(request("X-API-Key", wrong)); err == nil {
			t.Fatal("accepted")
		}
	}
	lines := strings.Count(out.String(), "\n")
	if !strings.Contains(out.String(), "level=INFO") || !strings.Contains(out.String(), "from=192.0.2.") || lines < failuresBurst || lines > 2*failuresBurst {
		t.Errorf("%d lines: %s", lines, out.String())
	}
	if strings.Contains(out.String(), wrong) {
		t.Error("the key stands in the log")
	}
}
