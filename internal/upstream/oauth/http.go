package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/addresses"
	"github.com/callyard/callyard/internal/kit/urls"
)

const (
	requestTime = 15 * time.Second
	dialTime    = 5 * time.Second
	maxDocument = 256 << 10
)

// NewHTTPClient returns a client for metadata and tokens. trusted are configured addresses: their
// hosts may have any address, other hosts only public ones. It is safe for concurrent use. Close
// its connections with CloseIdleConnections.
func NewHTTPClient(trusted ...string) *http.Client {
	hosts := make([]string, 0, len(trusted))
	for _, t := range trusted {
		if u, err := url.Parse(t); err == nil && u.Hostname() != "" {
			hosts = append(hosts, strings.ToLower(u.Hostname()))
		}
	}
	open := &net.Dialer{Timeout: dialTime}
	guarded := &net.Dialer{Timeout: dialTime, Control: addresses.Control(errPrivate, func(at netip.AddrPort) error {
		if !addresses.Public(at.Addr()) {
			return errPrivate
		}
		return nil
	})}
	known := func(host string) bool { return slices.Contains(hosts, strings.ToLower(host)) }
	transport := &http.Transport{
		Proxy: func(req *http.Request) (*url.URL, error) {
			if known(req.URL.Hostname()) {
				return http.ProxyFromEnvironment(req)
			}
			return nil, nil // a proxy would make the connection without the guard
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err == nil && known(host) {
				return open.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout: dialTime, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 30 * time.Second,
	}
	return &http.Client{
		Transport: transport, Timeout: requestTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
}

var (
	errPrivate  = errors.New("its address is not public; configure the issuer if that is intended")
	errRedirect = errors.New("it answers with a redirect, which is not followed")
)

// errAbsent means that the document does not exist.
var errAbsent = errors.New("there is no such document")

// document fetches a JSON document. It returns errAbsent for a 4xx status.
func document(ctx context.Context, client *http.Client, address string, into any) error {
	if _, ok := urls.Secure(address); !ok {
		return errors.New("its address is neither https nor on this machine")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return errors.New("its address is not valid")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return urls.WithoutURL(err)
	}
	defer resp.Body.Close()
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case resp.StatusCode/100 == 4:
		return errAbsent
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("it answers with HTTP status %d", resp.StatusCode)
	case kind != "application/json":
		return errors.New("it is not application/json")
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return urls.WithoutURL(err)
	case len(text) > maxDocument:
		return fmt.Errorf("it is longer than %d bytes", maxDocument)
	case json.Unmarshal(text, into) != nil:
		return errors.New("it is not the JSON that was expected")
	}
	return nil
}
