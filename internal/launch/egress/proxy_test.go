package egress

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callyard/callyard/internal/kit/addresses"
)

const patience = time.Minute

// names is a resolver that knows what answer tells, and what it was asked.
func names(t *testing.T, answer map[string]string) (*net.Resolver, func() []string) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			q := buffer[:n]
			var labels []string
			at := 12
			for at < len(q) && q[at] != 0 {
				labels = append(labels, string(q[at+1:at+1+int(q[at])]))
				at += 1 + int(q[at])
			}
			name := strings.Join(labels, ".")
			mu.Lock()
			asked = append(asked, name)
			mu.Unlock()
			v6 := binary.BigEndian.Uint16(q[at+1:]) == 28
			reply := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:at+5]...)
			if ip, err := netip.ParseAddr(answer[name]); err == nil && ip.Is6() == v6 {
				raw := ip.AsSlice()
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, q[at+2], 0, 1, 0, 0, 0, 0, 0, byte(len(raw)))
				reply = append(reply, raw...)
			}
			_, _ = server.WriteTo(reply, from)
		}
	}()
	t.Cleanup(func() { server.Close(); <-done })
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	return resolver, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return asked
	}
}

// startProxy is a proxy on a port of its own, and a client that uses it.
func startProxy(t *testing.T, o Options) (*Proxy, *http.Client, string) {
	t.Helper()
	o.Server, o.Log = "s", slog.New(slog.DiscardHandler)
	p := New(o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); p.Serve(l) }()
	t.Cleanup(func() { p.Close(); <-done })
	address := &url.URL{Scheme: "http", Host: l.Addr().String()}
	transport := &http.Transport{Proxy: http.ProxyURL(address)}
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, l.Addr().String()
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func status(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestASandboxCannotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	counted := 0
	p := New(Options{Server: "s", Log: slog.New(slog.NewTextHandler(&log, nil)), Decided: func(bool) { counted++ }})
	defer p.Close()
	for i := range 1000 {
		p.decide("api.example", 443, true, "")
		p.decide("other.example", 443, false, "it is not on the list")
		if text := log.String(); i == 500 && strings.Count(text, "\n") != 2 {
			t.Errorf("repeated decisions were logged: %.1000s", text)
		}
		if i > 500 {
			p.decide(fmt.Sprintf("%d.example", i), 443, false, "it is not on the list")
		}
	}
	if n := strings.Count(log.String(), "\n"); n != mostLogged || counted != 2499 {
		t.Errorf("%d lines, %d counted", n, counted)
	}
}

func TestListedNameWithPrivateAddressIsRefused(t *testing.T) {
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody got in") }))
	defer inner.Close()
	port := portOf(t, inner.URL)
	hosts := map[string]string{
		"loopback.example": "127.0.0.1", "loopback6.example": "::1", "mapped.example": "::ffff:127.0.0.1", "private.example": "10.1.2.3", "shared.example": "100.64.0.1",
		"metadata.example": "169.254.169.254", "azure.example": "168.63.129.16", "aws.example": "fd00:ec2::254", "nowhere.example": "0.0.0.0", "multicast.example": "224.0.0.1",
		"all.example": "255.255.255.255", "unique.example": "fd12::1", "link.example": "fe80::1", "nat64.example": "64:ff9b::7f00:1",
	}
	own, err := addresses.Own()
	if err != nil {
		t.Fatal(err)
	}
	for i, ip := range own {
		hosts[fmt.Sprintf("own%d.example", i)] = ip.String()
	}
	resolver, _ := names(t, hosts)
	var places []string
	for name := range hosts {
		places = append(places, name+":"+port)
	}
	var refused atomic.Int64
	_, client, _ := startProxy(t, Options{List: listOf(t, places...), Resolver: resolver, Decided: func(ok bool) {
		if !ok {
			refused.Add(1)
		}
	}})
	for name := range hosts {
		if code, body := status(t, client, "http://"+name+":"+port+"/"); code != http.StatusForbidden {
			t.Errorf("%s (%s) answers %d %s", name, hosts[name], code, body)
		}
	}
	if got := refused.Load(); got < int64(len(hosts)) {
		t.Errorf("%d refusals were counted of %d", got, len(hosts))
	}
	// Allowed by name: what is private then, and never where credentials are.
	for name, never := range map[string]bool{"metadata.example": true, "azure.example": true, "aws.example": true, "link.example": true, "nowhere.example": true} {
		l := listOf(t, name+":"+port)
		l.AllowPrivate(name + ":" + port)
		_, client, _ := startProxy(t, Options{List: l, Resolver: resolver})
		if code, _ := status(t, client, "http://"+name+":"+port+"/"); never && code != http.StatusForbidden {
			t.Errorf("%s, allowed by name, answers %d", name, code)
		}
	}
}

func TestUnlistedNamesAreNotResolved(t *testing.T) {
	resolver, asked := names(t, map[string]string{"listed.example": "10.0.0.1"})
	_, client, _ := startProxy(t, Options{List: listOf(t, "listed.example:80"), Resolver: resolver})
	for _, name := range []string{"c2VjcmV0.tunnel.example", "listed.example.tunnel.example", "listed.example:81"} {
		if code, _ := status(t, client, "http://"+name+"/"); code != http.StatusForbidden {
			t.Errorf("%s answers %d", name, code)
		}
	}
	if got := asked(); len(got) > 0 {
		t.Errorf("it looked %v up", got)
	}
	if code, _ := status(t, client, "http://listed.example/"); code != http.StatusForbidden || len(asked()) == 0 {
		t.Errorf("the listed name answers %d after %v", code, asked())
	}
}

func TestRedirectsAreReturnedAndCheckedAgain(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody got in") }))
	defer target.Close()
	var got http.Header
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		http.Redirect(w, r, target.URL, http.StatusFound)
	}))
	defer here.Close()
	place := "127.0.0.1:" + portOf(t, here.URL)
	l := listOf(t, place)
	l.AllowPrivate(place)
	_, client, _ := startProxy(t, Options{List: l})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, here.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Proxy-Authorization", "Basic c2VjcmV0")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		t.Errorf("it answers %d", answer.StatusCode)
	}
	if got.Get("Proxy-Authorization") != "" || got.Get("X-Forwarded-For") != "" {
		t.Errorf("the place sees %v", got)
	}
	if code, _ := status(t, client, answer.Header.Get("Location")); code != http.StatusForbidden {
		t.Errorf("following it answers %d", code)
	}
}

func TestClosingAProxyEndsItsTunnels(t *testing.T) {
	there, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	l := listOf(t, there.Addr().String())
	l.AllowPrivate(there.Addr().String())
	p, _, address := startProxy(t, Options{List: l})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %[1]s HTTP/1.1\r\nHost: %[1]s\r\n\r\nearly\n", there.Addr())
	peer, err := there.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	// What was sent along with the question gets there as well.
	if line, err := bufio.NewReader(peer).ReadString('\n'); err != nil || line != "early\n" {
		t.Errorf("the place reads %q, %v", line, err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Errorf("it answers %q, %v", line, err)
	}
	p.Close()
	if _, err := io.ReadAll(in); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the end was %v", err)
	}
	if n, err := peer.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes more came", n)
	}
}

func TestRequestsToTheProxyItselfAreRefused(t *testing.T) {
	_, _, address := startProxy(t, Options{List: listOf(t, "example.com:443")})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                                                 "400",
		"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n":                    "400",
		"CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n":                         "400",
		"CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:443\r\n\r\n":                  "403",
		"GET http://other.example/ HTTP/1.1\r\nHost: example.com:443\r\n\r\n":               "403",
		"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 2*mostHeader) + "\r\n\r\n": "431",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, " "+want+" ") {
			t.Errorf("%.60q is answered with %q, %v", request, line, err)
		}
		conn.Close()
	}
}

func TestHostHeaderIsReplacedByTheCheckedAddress(t *testing.T) {
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "for "+r.Host) }))
	defer here.Close()
	place := "127.0.0.1:" + portOf(t, here.URL)
	l := listOf(t, place)
	l.AllowPrivate(place)
	_, _, address := startProxy(t, Options{List: l})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n", place)
	if got, err := io.ReadAll(conn); err != nil || !strings.HasSuffix(string(got), "for "+place) {
		t.Errorf("it answers %q, %v", got, err)
	}
}
