package fetch

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// fakeDNS answers every name with the addresses that answer returns.
func fakeDNS(answer func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { // ends when the resolver closes its connection
			defer server.Close()
			for serveDNS(server, answer) == nil {
			}
		}()
		return client, nil
	}}
}

func serveDNS(c net.Conn, answer func(name string) []string) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		return err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	for _, text := range answer(strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))) {
		ip := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1}
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

// recorder records attempted connections, and permits only some of them.
type recorder struct {
	mu    sync.Mutex
	dials []netip.AddrPort
	let   func(netip.AddrPort) bool
}

var errTest = errors.New("the test makes no connection")

func (r *recorder) approve(at netip.AddrPort) error {
	if r.let != nil && r.let(at) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dials = append(r.dials, at)
	return errTest
}

func testServer(t *testing.T, resolver *net.Resolver, allow ...string) (*server, *recorder) {
	t.Helper()
	g, err := newGuard(allow)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	g.resolver, g.approved = resolver, r.approve
	return newServer(g, "test"), r
}

// inner are URLs of internal addresses, in all forms that URL parsers, resolvers and kernels accept.
var inner = []string{
	// loopback
	"http://127.0.0.1/", "http://127.0.0.1:80/", "https://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://127.255.255.254/",
	"http://2130706433/", "http://0x7f000001/", "http://0x7f.0x0.0x0.0x1/", "http://0177.0.0.1/", "http://017700000001/", "http://0x7f.1/", "http://127.0.0.1./",
	"http://0/", "http://0.0.0.0/", "http://0.1.2.3/", "http://[::]/", "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::1%25lo]/",
	"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::127.0.0.1]/", "http://[0:0:0:0:0:ffff:127.0.0.1]/",
	// names of this machine
	"http://localhost/", "http://LOCALHOST/", "http://localhost./", "http://localhost.localdomain/", "http://foo.localhost/", "http://ip6-localhost/", "http://loopback/",
	// private networks
	"http://10.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://100.64.0.1/", "http://[fc00::1]/", "http://[fd12:3456::1]/", "http://[::ffff:10.0.0.1]/",
	"http://3232235777/", "http://0xc0a80101/", "http://192.168.257/",
	// link-local and metadata
	"http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/",
	"http://[fe80::1]/", "http://[fe80::1%25eth0]/", "http://[fd00:ec2::254]/", "http://metadata.google.internal/", "http://100.100.100.200/", "http://168.63.129.16/", "http://192.0.0.192/",
	// addresses inside addresses
	"http://[64:ff9b::7f00:1]/", "http://[64:ff9b::a9fe:a9fe]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/", "http://[2002:a9fe:a9fe::1]/", "http://[2001:0:7f00:1::]/", "http://[fec0::1]/",
	// not unicast, or reserved
	"http://224.0.0.1/", "http://[ff02::1]/", "http://255.255.255.255/", "http://240.0.0.1/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.51.100.1/", "http://203.0.113.1/", "http://[2001:db8::1]/", "http://[100::1]/",
	// names that resolve to internal addresses
	"http://inner.example/", "http://inner.example./", "http://127.0.0.1.nip.example/", "http://xn--nxasmq6b.example/", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/",
	// forms on which parsers disagree
	"http://example.com@127.0.0.1/", "http://127.0.0.1@example.com/", "http://127.0.0.1#@example.com/", "http://127.0.0.1?@example.com/", "http://127.0.0.1\\@example.com/", "http:///127.0.0.1/", "http:127.0.0.1/",
	"http://[::1]:22/", "http://127.0.0.1:8080/", "http://example.com:22/", "http://example.com:65536/", "http://example.com:0/",
	// other schemes
	"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:70/", "unix:///var/run/docker.sock", "//127.0.0.1/", "127.0.0.1", "javascript:alert(1)", "data:text/plain,x", "jar:http://127.0.0.1!/", "dict://127.0.0.1:11211/",
}

// insideDNS resolves every name to internal addresses, and start.example to the address of the test
// servers.
func insideDNS() *net.Resolver {
	return fakeDNS(func(name string) []string {
		if name == "start.example" {
			return []string{"127.0.0.1"}
		}
		return []string{"127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1"}
	})
}

func TestInternalAddressesAreRefusedInEveryForm(t *testing.T) {
	if len(inner) < 60 {
		t.Fatalf("only %d forms", len(inner))
	}
	s, r := testServer(t, insideDNS())
	for _, url := range inner {
		if p, err := s.fetch(t.Context(), nil, arguments{URL: url}); err == nil {
			t.Errorf("%s: %+v", url, p)
		} else if errors.Is(err, errTest) {
			t.Errorf("%s would be reached", url)
		}
	}
	if len(r.dials) > 0 {
		t.Errorf("connections are made to %v", r.dials)
	}
	t.Logf("%d forms are refused", len(inner))
}

// TestRedirectsToInternalAddressesAreRefused redirects to each form, with every status, from an allowed host.
func TestRedirectsToInternalAddressesAreRefused(t *testing.T) {
	var location string
	status, requests := 302, 0
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Location", location)
		w.WriteHeader(status)
	}))
	defer web.Close()
	_, port, err := net.SplitHostPort(web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, r := testServer(t, insideDNS(), "start.example:"+port)
	r.let = func(at netip.AddrPort) bool { return at.String() == web.Listener.Addr().String() }
	for i, url := range inner {
		if url == "127.0.0.1" || strings.HasPrefix(url, "http:127") || strings.HasPrefix(url, "javascript") || strings.HasPrefix(url, "data") {
			continue // a path on the same host, or a URL that is refused above
		}
		location, status = url, []int{301, 302, 303, 307, 308}[i%5]
		if p, err := s.fetch(t.Context(), nil, arguments{URL: "http://start.example:" + port + "/"}); err == nil {
			t.Errorf("%s: %+v", url, p)
		} else if errors.Is(err, errTest) {
			t.Errorf("%s would be reached", url)
		}
	}
	if len(r.dials) > 0 {
		t.Errorf("connections are made to %v", r.dials)
	}
	if requests < 60 {
		t.Errorf("only %d redirects are tried", requests)
	}
	location, requests = "/again", 0
	if _, err := s.fetch(t.Context(), nil, arguments{URL: "http://start.example:" + port + "/"}); err == nil || requests != maxRedirects+1 || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("a circle: %d requests, %v", requests, err)
	}
}

func TestDNSRebindingIsRefused(t *testing.T) {
	var mu sync.Mutex
	lookups := 0
	s, r := testServer(t, fakeDNS(func(string) []string {
		mu.Lock()
		defer mu.Unlock()
		lookups++
		return [][]string{{"93.184.216.34"}, {"127.0.0.1"}, {"93.184.216.34", "127.0.0.1"}, {"169.254.169.254"}}[lookups%4]
	}))
	for range 40 {
		if _, err := s.fetch(t.Context(), nil, arguments{URL: "http://rebind.example/"}); err == nil {
			t.Error("it succeeds")
		}
	}
	if len(r.dials) == 0 {
		t.Error("the public address is not tried")
	}
	for _, at := range r.dials {
		if at.Addr().String() != "93.184.216.34" {
			t.Errorf("a connection is made to %v", at)
		}
	}
}

func TestAllowOpensOnlyTheListedAddresses(t *testing.T) {
	dns := fakeDNS(func(name string) []string {
		return map[string][]string{"wiki.internal": {"10.1.2.3"}, "other.internal": {"10.1.2.3"}, "meta.internal": {"169.254.169.254"}, "far.internal": {"10.9.9.9"}}[name]
	})
	for _, c := range []struct {
		allow string
		open  []string
		shut  []string
	}{
		{"wiki.internal", []string{"http://wiki.internal/", "https://WIKI.internal./x"}, []string{"http://other.internal/", "http://10.1.2.3/", "http://wiki.internal:8080/"}},
		{"wiki.internal:8080", []string{"http://wiki.internal:8080/"}, []string{"http://wiki.internal/", "http://other.internal:8080/", "http://10.1.2.3:8080/"}},
		{"10.1.2.0/24", []string{"http://10.1.2.3/", "http://other.internal/", "http://[::ffff:10.1.2.3]/"}, []string{"http://far.internal/", "http://10.1.2.3:8080/", "http://10.1.3.3/"}},
		{"10.1.2.3:8080", []string{"http://10.1.2.3:8080/", "http://other.internal:8080/"}, []string{"http://10.1.2.3/", "http://10.1.2.3:8081/", "http://far.internal:8080/", "http://93.184.216.34:8080/"}},
		{"[fd12::1]:8080", []string{"http://[fd12::1]:8080/"}, []string{"http://[fd12::2]:8080/"}},
		{"0.0.0.0/0", []string{"http://127.0.0.1/"}, []string{"http://169.254.169.254/", "http://0.0.0.0/", "http://224.0.0.1/", "http://168.63.129.16/"}},
		{"meta.internal", nil, []string{"http://meta.internal/"}},
		{"::/0", []string{"http://[::1]/"}, []string{"http://[fe80::1]/", "http://[fd00:ec2::254]/", "http://127.0.0.1/"}},
	} {
		for i, url := range append(append([]string{}, c.open...), c.shut...) {
			s, r := testServer(t, dns, c.allow)
			if _, err := s.fetch(t.Context(), nil, arguments{URL: url}); err == nil {
				t.Errorf("%s: it succeeds", url)
			}
			if reached := len(r.dials) > 0; reached != (i < len(c.open)) {
				t.Errorf("allow %s: %s is reached: %v", c.allow, url, reached)
			}
		}
	}
	for _, bad := range []string{"", "https://wiki.internal", "wiki.internal/x", "10.0.0.0/40", "*.internal", "a:0", "a:x", "a b"} {
		if _, err := Tools([]string{bad}, "test"); err == nil || !strings.Contains(err.Error(), "allow: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestOwnPublicAddressIsRefused(t *testing.T) {
	s, r := testServer(t, nil)
	s.guard.own = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil }
	for url, want := range map[string]int{"http://93.184.216.34/": 0, "http://[::ffff:93.184.216.34]/": 0, "http://93.184.216.35/": 1} {
		r.dials = nil
		if _, err := s.fetch(t.Context(), nil, arguments{URL: url}); err == nil || len(r.dials) != want {
			t.Errorf("%s: %v, %v", url, r.dials, err)
		}
	}
}
