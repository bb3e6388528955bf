package webhook

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// spellings returns ways to write an inner address of this machine, with the port.
func spellings(own, port string) []string {
	hosts := []string{
		// loopback, as parsers of all times read it
		"127.0.0.1", "127.1", "127.0.1", "127.000.000.001", "127.0.0.1.", "0127.0.0.1", "0177.0.0.1", "0177.0.0.01", "00177.1", "017700000001",
		"0x7f.0.0.1", "0x7f.1", "0x7f000001", "0X7F000001", "0x7F.0x0.0x0.0x1", "2130706433", "02130706433", "4294967297", "127.0.0.2", "127.255.255.254",
		"0.0.0.0", "0", "0x0", "00000000", "[::]", "[::0]", "[0:0:0:0:0:0:0:1]", "[::1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::1%25lo]", "[::127.0.0.1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::FFFF:7F00:0001]", "[::ffff:0:127.0.0.1]",
		// translated and tunnelled
		"[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2001::80ff:fffe]",
		// names
		"localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "ip6-localhost", "rebind.example", "inner.example", "inner6.example", "mapped.example", "both.example",
		// percent and other alphabets
		"%31%32%37.0.0.1", "127%2e0.0.1", "127.0.0.1%00.example.com", "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u217c\u2113ocalhost",
		// who is it really
		"example.com@127.0.0.1", "127.0.0.1#@example.com", "example.com\\@127.0.0.1", "127.0.0.1\\.example.com", "127.0.0.1\t", " 127.0.0.1", "127.0.0.1\r\nx",
		// others that are inner here
		own, "[::ffff:" + own + "]", "169.254.169.254", "[fe80::1]", "10.0.0.1", "192.168.0.1", "100.100.100.200", "168.63.129.16", "[fd00:ec2::254]", "255.255.255.255", "224.0.0.1",
	}
	urls := make([]string, 0, len(hosts))
	for _, h := range hosts {
		if strings.ContainsAny(h, "#") {
			urls = append(urls, "http://"+h)
			continue
		}
		urls = append(urls, "http://"+h+":"+port+"/hook")
	}
	return urls
}

// ownAddress is one of this machine's addresses outside of loopback, or a
// private one that is nobody's.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsPrivate() {
			return p.Addr().String()
		}
	}
	return "10.255.255.1"
}

// countConnections is a listener on every address of this machine that counts connections.
func countConnections(t *testing.T) (port string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port), hits
}

// names is a DNS server over UDP: what it answers can change with each question.
func names(t *testing.T, answer func(name string, v6 bool) []netip.Addr) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := dnsReply(buf[:n], answer); reply != nil {
				_, _ = pc.WriteTo(reply, from)
			}
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", pc.LocalAddr().String())
	}}
}

func dnsReply(q []byte, answer func(string, bool) []netip.Addr) []byte {
	if len(q) < 17 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(q) && q[at] != 0 {
		labels = append(labels, string(q[at+1:at+1+int(q[at])]))
		at += 1 + int(q[at])
	}
	v6 := binary.BigEndian.Uint16(q[at+1:]) == 28
	question := q[12 : at+5]
	addresses := answer(strings.ToLower(strings.Join(labels, ".")), v6)
	reply := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, byte(len(addresses)), 0, 0, 0, 0}, question...)
	if len(addresses) == 0 && !v6 {
		reply[3] = 0x83 // no such name
	}
	for _, a := range addresses {
		raw := a.AsSlice()
		reply = append(reply, 0xc0, 12, 0, q[at+2], 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
		reply = append(reply, raw...)
	}
	return reply
}

func newGuardedPoster(t *testing.T, rules Rules, resolver *net.Resolver) *poster {
	t.Helper()
	signer, fault := newSigner([]string{secretA})
	if fault != nil {
		t.Fatal(fault)
	}
	// No root is trusted: to read those of the system takes seconds under -race.
	transport := newTransport(rules, 4, x509.NewCertPool(), resolver)
	t.Cleanup(transport.CloseIdleConnections)
	return &poster{rules: rules, signer: signer, timeout: 500 * time.Millisecond, now: time.Now, client: &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func stubNames(name string, v6 bool) []netip.Addr {
	for suffix, to := range map[string][2]string{
		"inner.example": {"127.0.0.1", ""}, "inner6.example": {"", "::1"}, "mapped.example": {"", "::ffff:127.0.0.1"},
		"both.example": {"127.0.0.1", "::1"}, "localhost": {"127.0.0.1", "::1"}, "localhost.localdomain": {"127.0.0.1", "::1"}, "ip6-localhost": {"", "::1"},
		"rebind.example": {"127.0.0.1", ""},
	} {
		if name == suffix || strings.HasPrefix(name, suffix+".") {
			if a, err := netip.ParseAddr(to[map[bool]int{true: 1}[v6]]); err == nil {
				return []netip.Addr{a}
			}
		}
	}
	return nil
}

func TestInternalAddressesAreRefusedInEverySpelling(t *testing.T) {
	port, hits := countConnections(t)
	own := ownAddress(t)
	urls := spellings(own, port)
	if len(urls) < 60 {
		t.Fatalf("%d spellings, want 60 at least", len(urls))
	}
	resolver := names(t, stubNames)
	// The port and http must not be what saves us: the rules allow the port, and
	// the second pass goes behind the look at the URL.
	rules := Rules{Ports: []int{portNumber(port)}}
	p := newGuardedPoster(t, rules, resolver)
	reached := map[string]bool{}
	for _, u := range urls {
		for _, scheme := range []string{"http", "https"} {
			u := scheme + strings.TrimPrefix(u, "http")
			p.post(t.Context(), request{id: "m", url: u, body: []byte("{}")})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u, http.NoBody)
			if err != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if resp, err := p.client.Do(req.WithContext(ctx)); err == nil {
				resp.Body.Close()
			}
			cancel()
		}
		if n := hits.Swap(0); n > 0 {
			t.Errorf("%q: %d connections to the inner listener", u, n)
		}
	}

	// A client without a guard is let in by many of them: the listener, the names
	// and the spellings are real.
	transport := &http.Transport{DialContext: (&net.Dialer{Resolver: resolver}).DialContext, DisableKeepAlives: true}
	for _, u := range urls {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u, http.NoBody)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if resp, err := transport.RoundTrip(req.WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
		cancel()
		if hits.Swap(0) > 0 {
			reached[u] = true
		}
	}
	t.Logf("%d spellings: none reaches with the guard, %d without it", len(urls), len(reached))
	if len(reached) < 8 {
		t.Errorf("without the guard only %d spellings reach the listener: the test proves little", len(reached))
	}
}

func TestDNSRebindingIsRefused(t *testing.T) {
	port, hits := countConnections(t)
	var questions atomic.Int64
	resolver := names(t, func(_ string, v6 bool) []netip.Addr {
		if v6 {
			return nil
		}
		// A public address for the first look, then an inner one.
		if questions.Add(1) == 1 {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	})
	if ips, err := resolver.LookupNetIP(t.Context(), "ip4", "rebind.example"); err != nil || ips[0].String() != "192.0.2.1" {
		t.Fatalf("%v, %v", ips, err)
	}
	memory, c := newMemory(), newCounter()
	s := start(t, Options{Rules: Rules{Ports: []int{portNumber(port)}}, Store: memory, Secrets: []string{secretA}, Resolver: resolver, Count: c.count, Log: slog.New(slog.DiscardHandler)})
	send(t, s, "m1", "https://rebind.example:"+port+"/x")
	c.wait(t, Dead)
	if hits.Load() != 0 || questions.Load() < 2 {
		t.Errorf("%d connections to the inner listener, %d questions", hits.Load(), questions.Load())
	}
	checkContains(t, only(t, s.Deliveries(schema.AllTenants(), true)).Dead, "internal network")
}

func TestARedirectIsNotFollowed(t *testing.T) {
	port, hits := countConnections(t)
	for _, code := range []int{301, 302, 303, 307, 308} {
		srv, requests := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:"+port+"/", code)
		})
		c := newCounter()
		o := local(newMemory())
		o.Count = c.count
		s := start(t, o)
		send(t, s, "m1", srv.URL)
		c.wait(t, Dead)
		if hits.Load() != 0 || len(requests) != 1 {
			t.Errorf("%d: %d connections to the redirect's end, %d requests", code, hits.Load(), len(requests))
		}
		checkContains(t, only(t, s.Deliveries(schema.AllTenants(), true)).Dead, "redirect")
	}
}

func TestCloudMetadataIsRefusedEvenIfPrivateIsAllowed(t *testing.T) {
	dev := Rules{AllowPrivate: true}
	for ip, safe := range map[string]bool{
		"127.0.0.1": true, "10.0.0.1": true, "::1": true, "fd12::1": true, "100.64.0.1": true, "::ffff:10.0.0.1": true, "8.8.8.8": true,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1": false, "fd00:ec2::254": false, "fd20:ce::254": false,
		"100.100.100.200": false, "168.63.129.16": false, "0.0.0.0": false, "::": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
	} {
		if err := dev.safe(netip.MustParseAddr(ip)); (err == nil) != safe {
			t.Errorf("%s: %v", ip, err)
		}
	}
}

func TestAllowedHostsAreReachedAtPrivateAddresses(t *testing.T) {
	srv, requests := serve(t, status(204))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p := newGuardedPoster(t, Rules{AllowedHosts: []string{"inner.example:" + port}}, names(t, stubNames))
	p.timeout = time.Minute
	if a := p.post(t.Context(), request{id: "m", url: "http://inner.example:" + port, body: []byte("{}")}); a.status != 204 || len(requests) != 1 {
		t.Errorf("%+v", a)
	}
	// The same address under a name that nobody vouched for.
	if a := p.post(t.Context(), request{id: "m", url: "https://both.example/", body: []byte("{}")}); !a.final || len(requests) != 1 {
		t.Errorf("%+v", a)
	}
}
