package egress

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listOf(t testing.TB, places ...string) List {
	t.Helper()
	l, faults := Parse(places)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return l
}

func TestListCoversOnlyItsEntries(t *testing.T) {
	l := listOf(t, "api.example.com:443", "*.cdn.example.com:443", "192.0.2.7:8080", "[2001:db8::7]:80", "Mixed.Example.org.:80")
	for host, want := range map[string]bool{
		"api.example.com:443": true, "API.Example.COM:443": true, "api.example.com.:443": true,
		"a.cdn.example.com:443": true, "a.b.cdn.example.com:443": true, "mixed.example.org:80": true,
		"192.0.2.7:8080": true, "[::ffff:192.0.2.7]:8080": true, "[2001:db8:0::7]:80": true,
		"api.example.com:80": false, "x.api.example.com:443": false, "example.com:443": false, "cdn.example.com:443": false,
		"evilcdn.example.com:443": false, "api.example.com.evil.org:443": false, "*.cdn.example.com:80": false, "192.0.2.8:8080": false, "[2001:db8::8]:80": false,
	} {
		name, port, ok := split(host)
		if _, got := l.find(name, port); !ok || got != want {
			t.Errorf("%s is on the list: %t", host, got)
		}
	}
}

func TestInvalidDestinationIsRefusedWithAnExplanation(t *testing.T) {
	for _, text := range []string{
		"", "none", "example.com", "example.com:", "example.com:0", "example.com:65536", "example.com:http", ":443", "*:443", "*.com:443", "*.*.com:443",
		"a*.example.com:443", "https://example.com:443", "example.com/path:443", "ex ample.com:443", "1.2.3:80", "0x7f.1:80", "2130706433:80",
		"*.0.0.1:80", "*.127.0.0.1:80", "[fe80::1%eth0]:80", "bücher.example:443", strings.Repeat("a", 64) + ".example:1", strings.Repeat("a.", 200) + "b:1",
	} {
		if l, faults := Parse([]string{text}); len(faults) != 1 || !l.Empty() || !strings.Contains(faults[0].Error(), "write HOST:PORT") {
			t.Errorf("%q became %v, %v", text, l, faults)
		}
	}
	if _, faults := Parse(make([]string, mostPlaces+1)); len(faults) != 1 {
		t.Errorf("an endless list: %v", faults)
	}
}

func TestPrivateAddressesOfTheListAreDetected(t *testing.T) {
	l := listOf(t, "10.0.0.5:80", "127.0.0.1:80", "[::1]:80", "[fd00::1]:80", "169.254.169.254:80", "8.8.8.8:443", "inner.example:80")
	private := l.Private()
	if got := strings.Join(private, " "); got != "10.0.0.5:80 127.0.0.1:80 [::1]:80 [fd00::1]:80 169.254.169.254:80" {
		t.Errorf("private are %s", got)
	}
	for _, text := range private {
		if l.Never(text) != (text == "169.254.169.254:80") {
			t.Errorf("%s is never reached: %t", text, l.Never(text))
		}
	}
	if !l.AllowPrivate("inner.example:80") || l.AllowPrivate("elsewhere.example:80") {
		t.Error("what is on the list can be allowed, and nothing else")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"api.example.com:443", "*.example.com:1", "[::1]:80", "*:443", "1.2.3.4:5", "x..y:1"} {
		f.Add(seed, "api.example.com:443")
	}
	f.Fuzz(func(t *testing.T, text, asked string) {
		l, faults := Parse([]string{text})
		if (len(faults) == 0) == l.Empty() {
			t.Fatalf("%q became %v with %v", text, l, faults)
		}
		host, port, ok := split(asked)
		if !ok {
			return
		}
		p, found := l.find(host, port)
		if !found {
			return
		}
		// Whatever is covered ends as the place does.
		if got := normal(host); p.port != port || p.any && !strings.HasSuffix(got, "."+p.host) {
			t.Fatalf("%q covers %q", text, asked)
		}
	})
}
