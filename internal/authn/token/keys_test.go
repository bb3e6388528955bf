package token

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/authn/token/tokentest"
	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeIssuer is an issuer without a network.
type fakeIssuer struct {
	mu      sync.Mutex
	keys    []*tokentest.Key
	fetches int
	down    bool
	takes   time.Duration
}

func (i *fakeIssuer) fetch(ctx context.Context) ([]byte, error) {
	i.mu.Lock()
	i.fetches++
	down, set, takes := i.down, tokentest.KeySet(i.keys...), i.takes
	i.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if down {
		return nil, errors.New("out of order")
	}
	return set, nil
}

func (i *fakeIssuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func (i *fakeIssuer) count() (n int) {
	i.change(func() { n = i.fetches })
	return n
}

const idpURL = "https://idp.example"

// open returns a verifier for an issuer with one key.
func (i *fakeIssuer) open(t testing.TB) *Verifier {
	t.Helper()
	v, err := New([]settings.Issuer{{Name: "idp", Issuer: idpURL, Audiences: []string{"door"}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	v.issuers[idpURL].keys.fetch = i.fetch
	return v
}

func sign(t testing.TB, k *tokentest.Key, subject string) string {
	t.Helper()
	now := time.Now()
	return k.Sign(t, tokentest.Claims{"iss": idpURL, "sub": subject, "aud": "door", "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "scope": "tools:read"}, nil)
}

func TestTenThousandUnknownKeysCostOneFetchInThirtySeconds(t *testing.T) {
	good := tokentest.NewKey(t, "good", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: []*tokentest.Key{good}, takes: 50 * time.Millisecond}
		v := i.open(t)
		defer v.Close()
		if _, err := v.Verify(t.Context(), sign(t, good, "ann"), "https://door.example"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(cooldown)
		base, began := i.count(), time.Now()
		var all sync.WaitGroup
		for n := range 10_000 {
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond * 9) // over 90 seconds
				if _, err := v.issuers[idpURL].keys.find(t.Context(), fmt.Sprint("unknown-", n), "ES256", time.Time{}); !errors.Is(err, errUnknownKey) {
					t.Errorf("%d: %v", n, err)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		if n, most := i.count()-base, 1+int(took/cooldown); n == 0 || n > most {
			t.Errorf("%d fetches in %s, want at most %d", n, took, most)
		}
		if _, err := v.Verify(t.Context(), sign(t, good, "bob"), "https://door.example"); err != nil {
			t.Errorf("a good token afterwards: %v", err)
		}
	})
}

func TestRotationUnderLoadRefusesNoValidToken(t *testing.T) {
	var keys []*tokentest.Key
	for n := range 6 {
		keys = append(keys, tokentest.NewKey(t, fmt.Sprint("key-", n), jose.EdDSA))
	}
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: keys[:1], takes: 200 * time.Millisecond}
		v := i.open(t)
		defer v.Close()
		stop := make(chan struct{})
		var all sync.WaitGroup
		var mu sync.Mutex
		checked, now := 0, keys[0]
		for w := range 10 {
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(time.Duration(500+10*w) * time.Millisecond):
					}
					mu.Lock()
					k := now
					mu.Unlock()
					if _, err := v.Verify(t.Context(), sign(t, k, fmt.Sprint(w, "-", n)), "https://door.example"); err != nil {
						t.Errorf("%s: %v", k.ID, err)
					}
					mu.Lock()
					checked++
					mu.Unlock()
				}
			})
		}
		for n := 1; n < len(keys); n++ {
			time.Sleep(40 * time.Second)
			i.change(func() { i.keys = keys[n-1 : n+1] }) // the last one stays for the tokens that it signed
			mu.Lock()
			now = keys[n]
			mu.Unlock()
		}
		time.Sleep(40 * time.Second)
		close(stop)
		all.Wait()
		if checked < 1000 {
			t.Errorf("%d tokens were checked", checked)
		}
		if n := i.count(); n > 8 {
			t.Errorf("%d fetches for %d rotations", n, len(keys)-1)
		}
	})
}

func TestKnownKeysWorkDuringAnIssuerOutage(t *testing.T) {
	key, other := tokentest.NewKey(t, "key", jose.ES256), tokentest.NewKey(t, "other", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: []*tokentest.Key{key}}
		v := i.open(t)
		defer v.Close()
		verify := func(k *tokentest.Key) error {
			_, err := v.Verify(t.Context(), sign(t, k, "ann"), "https://door.example")
			return err
		}
		if err := verify(key); err != nil {
			t.Fatal(err)
		}
		i.change(func() { i.down = true })
		for range 60 {
			time.Sleep(time.Minute)
			if err := verify(key); err != nil {
				t.Fatalf("a known key: %v", err)
			}
		}
		time.Sleep(2 * time.Hour)
		if err := verify(key); schema.KindOf(err) != schema.KindUnavailable {
			t.Errorf("keys that are old: %v", err)
		}
		i.change(func() { i.down, i.keys = false, []*tokentest.Key{other} })
		time.Sleep(cooldown)
		if err := verify(other); err != nil {
			t.Errorf("after the issuer is back: %v", err)
		}
		if err := verify(key); schema.KindOf(err) != schema.KindUnauthenticated {
			t.Errorf("a key that was taken out: %v", err)
		}
	})
}

// The issuer may have added the key in the meantime. With 401 a client would throw its good token
// away and ask the person again.
func TestUnknownKeyDuringAnIssuerOutageIsNoFaultOfTheToken(t *testing.T) {
	old, rotated := tokentest.NewKey(t, "old", jose.ES256), tokentest.NewKey(t, "rotated", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: []*tokentest.Key{old}}
		v := i.open(t)
		defer v.Close()
		verify := func(k *tokentest.Key) schema.Kind {
			_, err := v.Verify(t.Context(), sign(t, k, "ann"), "https://door.example")
			return schema.KindOf(err)
		}
		if kind := verify(old); kind != "" {
			t.Fatal(kind)
		}
		i.change(func() { i.keys, i.down = []*tokentest.Key{old, rotated}, true })
		time.Sleep(cooldown)
		for range 2 { // the fetch fails, and is not repeated yet
			if kind := verify(rotated); kind != schema.KindUnavailable {
				t.Errorf("a token of an unknown key: %q", kind)
			}
		}
		if kind := verify(old); kind != "" {
			t.Errorf("a token of a known key: %q", kind)
		}
		i.change(func() { i.down = false })
		time.Sleep(cooldown)
		if kind := verify(rotated); kind != "" {
			t.Errorf("after the outage: %q", kind)
		}
	})
}

// A fetch that is shorter ago than [cooldown] is not repeated.
func TestTokenThatIsNewerThanTheKnownKeysIsNotRefused(t *testing.T) {
	old, rotated, forged := tokentest.NewKey(t, "old", jose.ES256), tokentest.NewKey(t, "rotated", jose.ES256), tokentest.NewKey(t, "forged", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: []*tokentest.Key{old}}
		v := i.open(t)
		defer v.Close()
		verify := func(raw string) schema.Kind {
			_, err := v.Verify(t.Context(), raw, "https://door.example")
			return schema.KindOf(err)
		}
		early := sign(t, forged, "eve")
		time.Sleep(2 * time.Second)
		if kind := verify(early); kind != schema.KindUnauthenticated {
			t.Errorf("a token of an unknown key whose arrival began the fetch: %q", kind)
		}
		time.Sleep(10 * time.Second)
		i.change(func() { i.keys = []*tokentest.Key{rotated} })
		if kind := verify(early); kind != schema.KindUnauthenticated {
			t.Errorf("a token of an unknown key from before the fetch: %q", kind)
		}
		fresh := sign(t, rotated, "ann")
		if kind := verify(fresh); kind != schema.KindUnavailable {
			t.Errorf("a token of a new key: %q", kind)
		}
		time.Sleep(cooldown)
		if kind := verify(fresh); kind != "" {
			t.Errorf("the same token after the next fetch: %q", kind)
		}
		if kind := verify(early); kind != schema.KindUnauthenticated {
			t.Errorf("the token of an unknown key then: %q", kind)
		}
	})
}

func TestCachedTokensExpireAndKeysAreRefreshed(t *testing.T) {
	key, next := tokentest.NewKey(t, "key", jose.ES256), tokentest.NewKey(t, "next", jose.ES256)
	synctest.Test(t, func(t *testing.T) {
		i := &fakeIssuer{keys: []*tokentest.Key{key}}
		v := i.open(t)
		defer v.Close()
		short := key.Sign(t, tokentest.Claims{"iss": idpURL, "sub": "ann", "aud": "door", "exp": time.Now().Add(20 * time.Second).Unix()}, nil)
		long := sign(t, key, "bob")
		for _, raw := range []string{short, long} {
			if _, err := v.Verify(t.Context(), raw, ""); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20*time.Second + skew)
		if _, err := v.Verify(t.Context(), short, ""); err == nil {
			t.Error("an expired token is remembered")
		}
		i.change(func() { i.keys = []*tokentest.Key{next} })
		time.Sleep(refreshAfter)
		_, _ = v.Verify(t.Context(), long, "") // begins the fetch
		synctest.Wait()
		time.Sleep(rememberedFor)
		if _, err := v.Verify(t.Context(), long, ""); err == nil {
			t.Error("a token of a key that was taken out is remembered")
		}
	})
}

func TestUnusableKeysAreIgnored(t *testing.T) {
	for name, raw := range map[string]string{
		"no JSON": "x", "nothing": "{}", "empty": `{"keys":[]}`, "symmetric": `{"keys":[{"kty":"oct","k":"c2VjcmV0","kid":"a"}]}`, "unknown": `{"keys":[{"kty":"AKP","kid":"a"}]}`,
		"for encryption":  `{"keys":[` + publicWith(t, "enc") + `]}`,
		"a short RSA key": `{"keys":[{"kty":"RSA","e":"AQAB","n":"u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7QkrmBL7jTKEn5u-qKhbwKfBstIs-bMY2Zkp18gnTxKLxoS2tFczGkPLPgizskuemMghRniWaoLcyehkd3qqGElvW_VDL5AaWTg0nLVkjRo9z-40RQzuVaE8AkAFmxZzow3x-VJYKdjykkJ0iT9wCS0DRTXu269V264Vf_3jvredZiKRkgwlL9xNAwxXFg0x_XFw005UWVRIkdgcKWTjpBP2dPwVZ4WWC-9aGVd-Gyn1o0CLelf4rEjGoXbAAEgAqeGUxrcIlbjXfbcmw"}]}`[:120] + `"}]}`,
	} {
		if keys, err := ReadKeys([]byte(raw)); err == nil {
			t.Errorf("%s: %d keys", name, len(keys))
		}
	}
	keys, err := ReadKeys([]byte(`{"keys":[{"kty":"AKP"},` + publicWith(t, "sig") + `]}`))
	if err != nil || len(keys) != 1 {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

func publicWith(t *testing.T, use string) string {
	t.Helper()
	key := tokentest.NewKey(t, "key", jose.ES256).Public()
	key.Use = use
	raw, err := key.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func BenchmarkCachedToken(b *testing.B) {
	key := tokentest.NewKey(b, "key", jose.ES256)
	v := (&fakeIssuer{keys: []*tokentest.Key{key}}).open(b)
	defer v.Close()
	raw := sign(b, key, "ann")
	if _, err := v.Verify(b.Context(), raw, ""); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%1_000_000 == 0 { // it would be forgotten after a minute
			clear(v.known)
			_, _ = v.Verify(b.Context(), raw, "")
		}
		if _, err := v.Verify(b.Context(), raw, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkColdToken(b *testing.B) {
	for _, alg := range []jose.SignatureAlgorithm{jose.ES256, jose.RS256, jose.EdDSA} {
		b.Run(string(alg), func(b *testing.B) {
			key := tokentest.NewKey(b, "key", alg)
			v := (&fakeIssuer{keys: []*tokentest.Key{key}}).open(b)
			defer v.Close()
			raw := sign(b, key, "ann")
			b.ReportAllocs()
			for b.Loop() {
				clear(v.known)
				if _, err := v.Verify(b.Context(), raw, ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
