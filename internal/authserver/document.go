package authserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/singleflight"

	"github.com/callyard/callyard/internal/authn/token"
	"github.com/callyard/callyard/internal/kit/addresses"
	"github.com/callyard/callyard/pkg/schema"
)

// Limits of client-id metadata documents.
const (
	maxDocument       = 10 << 10
	documentWithin    = 5 * time.Second
	documentKept      = 5 * time.Minute
	documentFaultKept = 10 * time.Second
	maxDocuments      = 1000
	maxRedirects      = 20
	maxClientID       = 512
	maxClientName     = 100
)

// anyHost allows every host to describe a client.
const anyHost = "*"

// temporaryError is the reason why something could not be read, which a later attempt may not have.
type temporaryError struct{ error }

var (
	errPrivate  = errors.New("its address is not public")
	errRedirect = errors.New("it answers with a redirect, which is not followed")
)

// newDocumentClient returns a client that connects only to public addresses, and to the named hosts
// at any address.
func newDocumentClient(hosts []string) *http.Client {
	free := &net.Dialer{Timeout: documentWithin}
	guarded := &net.Dialer{Timeout: documentWithin, Control: addresses.Control(errPrivate, func(at netip.AddrPort) error {
		if !addresses.Public(at.Addr()) {
			return errPrivate
		}
		return nil
	})}
	return &http.Client{
		Timeout:       documentWithin,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
		Transport: &http.Transport{
			Proxy: nil, // a proxy would connect without the address check
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if host, _, err := net.SplitHostPort(address); err == nil && slices.Contains(hosts, strings.ToLower(host)) {
					return free.DialContext(ctx, network, address)
				}
				return guarded.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: documentWithin, MaxResponseHeaderBytes: 16 << 10, DisableKeepAlives: true,
		},
	}
}

// documents fetches the metadata documents of clients, and caches them for some minutes.
type documents struct {
	http   *http.Client
	hosts  []string
	now    func() time.Time
	log    *slog.Logger
	flight singleflight.Group

	mu    sync.Mutex
	known map[string]document
}

type document struct {
	client *Client
	err    error
	until  time.Time
}

func newDocuments(client *http.Client, hosts []string, now func() time.Time, log *slog.Logger) *documents {
	return &documents{http: client, hosts: hosts, now: now, log: log, known: make(map[string]document)}
}

// get returns the client that a document describes. The error is suitable for people.
func (d *documents) get(ctx context.Context, id string) (*Client, error) {
	if !d.names(id) {
		return nil, schema.Errorf(schema.KindInvalidRequest, "The program that sent you here is not known: its client_id is not registered. Ask the operator to add it to approver.authorization_server.clients.")
	}
	d.mu.Lock()
	known, ok := d.known[id]
	d.mu.Unlock()
	if ok && d.now().Before(known.until) {
		return known.client, known.err
	}
	got := d.flight.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), documentWithin)
		defer cancel()
		c, err := d.fetch(ctx, id)
		kept := documentKept
		if err != nil {
			kept = documentFaultKept
			err = schema.Errorf(schema.KindInvalidRequest, "The program that sent you here cannot be verified: reading its metadata document failed: %w.", err)
		}
		d.keep(id, document{c, err, d.now().Add(kept)})
		return c, err
	})
	return await[*Client](ctx, got)
}

func (d *documents) keep(id string, doc document) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxDocuments {
		clear(d.known)
	}
	d.known[id] = doc
}

// names reports whether an ID is the address of a document that may be fetched.
func (d *documents) names(id string) bool {
	if !goodClientID(id) {
		return false
	}
	u, err := url.Parse(id)
	return err == nil && slices.ContainsFunc(d.hosts, func(h string) bool { return h == anyHost || strings.EqualFold(h, u.Hostname()) })
}

// goodClientID reports whether an ID is an address that the draft allows: https, with a path, and
// without parts that parsers could interpret differently.
func goodClientID(id string) bool {
	if len(id) > maxClientID || !strings.HasPrefix(id, "https://") || strings.ContainsAny(id, "#?\\\"<>%") || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	u, err := url.Parse(id)
	if err != nil || u.User != nil || u.Hostname() == "" || len(u.Path) < 2 || strings.HasSuffix(u.Host, ":") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." })
}

func (d *documents) fetch(ctx context.Context, id string) (*Client, error) {
	text, err := readJSON(ctx, d.http, id, maxDocument, d.log)
	if err != nil {
		return nil, err
	}
	c, err := readDocument(id, text)
	if err == nil && c.KeysURL != "" && !d.names(c.KeysURL) {
		return nil, errors.New("its jwks_uri is not an https address of a host that may be read here")
	}
	return c, err
}

// readJSON fetches an address, and at most most bytes of it. The error is suitable for people. If
// there is no response, the log has the error of the network.
func readJSON(ctx context.Context, client *http.Client, address string, most int64, log *slog.Logger) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, errors.New("its address is not valid")
	}
	r.Header.Set("Accept", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		log.Info("reading an address for the authorization server failed", "error", err)
		if err = noResponse(err); errors.Is(err, errPrivate) || errors.Is(err, errRedirect) {
			return nil, err
		}
		return nil, temporaryError{err}
	}
	defer func() { _ = resp.Body.Close() }()
	switch err := errors.New("it answers " + resp.Status); {
	case resp.StatusCode >= http.StatusInternalServerError, resp.StatusCode == http.StatusTooManyRequests:
		return nil, temporaryError{err}
	case resp.StatusCode != http.StatusOK:
		return nil, err
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, errors.New("it is not JSON by its type")
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, temporaryError{errors.New("it ended early")}
	case int64(len(text)) > most:
		return nil, fmt.Errorf("it is longer than %d KiB", most>>10)
	}
	return text, nil
}

// noResponse returns the reason why there was no response. The errors of net/http contain the
// resolved addresses and the name server, which a person outside of the network must not see.
func noResponse(err error) error {
	var (
		dns         *net.DNSError
		certificate *tls.CertificateVerificationError
		timeout     interface{ Timeout() bool }
	)
	switch {
	case errors.Is(err, errPrivate):
		return errPrivate
	case errors.Is(err, errRedirect):
		return errRedirect
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("its host has no address")
	case errors.As(err, &certificate):
		return errors.New("the certificate of its host cannot be trusted")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("its host did not answer in time")
	}
	return errors.New("its host cannot be reached")
}

// readDocument parses an untrusted client-id metadata document.
func readDocument(id string, text []byte) (*Client, error) {
	var doc struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Secret    any      `json:"client_secret"`

		Keys    json.RawMessage `json:"jwks"`
		KeysURL string          `json:"jwks_uri"`
	}
	switch {
	case !utf8.Valid(text) || json.Unmarshal(text, &doc) != nil:
		return nil, errors.New("it is not a JSON object of a client")
	case doc.ID != id:
		return nil, errors.New("its client_id is not its address")
	case doc.Secret != nil:
		return nil, errors.New("it has a client_secret, which everybody can read")
	case doc.Method != "" && doc.Method != methodNone && doc.Method != methodKey:
		return nil, errors.New(`its token_endpoint_auth_method is not "none" or "private_key_jwt"`)
	case doc.Method == methodKey && (doc.Keys == nil) == (doc.KeysURL == ""):
		return nil, errors.New("it has no jwks and no jwks_uri, or both")
	case len(doc.Redirects) == 0 || len(doc.Redirects) > maxRedirects:
		return nil, errors.New("it has no redirect_uris, or more than 20")
	}
	for _, r := range doc.Redirects {
		if !GoodRedirect(r) {
			return nil, errors.New("one of its redirect_uris is not an https address, nor one of http on loopback")
		}
	}
	if utf8.RuneCountInString(doc.Name) > maxClientName || strings.ContainsFunc(doc.Name, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return nil, errors.New("its client_name is longer than 100 characters, or has invisible ones")
	}
	c := &Client{ID: id, Name: doc.Name, Redirects: doc.Redirects, Document: true}
	if doc.Method == methodKey { // otherwise the keys serve another purpose, and the client is a public one
		c.Keys, c.KeysURL = doc.Keys, doc.KeysURL
		if doc.Keys != nil {
			if _, err := token.ReadKeys(doc.Keys); err != nil {
				return nil, errors.New("its jwks has no public key that can sign")
			}
		}
	}
	return c, nil
}
