package webhook

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/callyard/callyard/internal/kit/addresses"
	"github.com/callyard/callyard/pkg/schema"
)

// maxURL limits the length of a callback_url, in bytes.
const maxURL = 2048

// Rules define the allowed receivers. The zero value allows https to public addresses on ports 80
// and 443.
type Rules struct {
	// AllowPrivate allows receivers in private networks and on loopback, on any port and also with
	// http. Addresses of cloud metadata services stay refused.
	AllowPrivate bool
	// AllowedHosts are trusted receivers, whatever their address. They may use http. An entry is a
	// host with any port, "host:port", or "*.domain" with or without a port.
	AllowedHosts []string
	// Ports are allowed in addition to 80 and 443.
	Ports []int
}

// check returns the fault of the rules themselves, or nil.
func (r Rules) check() *schema.Error {
	for _, entry := range r.AllowedHosts {
		host, port := splitEntry(entry)
		name := strings.TrimPrefix(host, "*.")
		_, err := netip.ParseAddr(host)
		if (err != nil && !hostName(name)) || (port != "" && portNumber(port) == 0) {
			return schema.Errorf(schema.KindInvalidRequest, "The allowed host %q is invalid: write host, host:port or *.domain.", entry)
		}
	}
	for _, port := range r.Ports {
		if port < 1 || port > 65535 {
			return schema.Errorf(schema.KindInvalidRequest, "The allowed port %d is invalid: write a number from 1 to 65535.", port)
		}
	}
	return nil
}

// allows reports whether the operator trusts a receiver. host is in lower case.
func (r Rules) allows(host string, port int) bool {
	for _, entry := range r.AllowedHosts {
		wantHost, wantPort := splitEntry(entry)
		if wantPort != "" && portNumber(wantPort) != port {
			continue
		}
		wantHost = strings.ToLower(wantHost)
		if domain, ok := strings.CutPrefix(wantHost, "*"); ok && strings.HasSuffix(host, domain) && len(host) > len(domain) {
			return true
		}
		if wantHost == host {
			return true
		}
	}
	return false
}

func splitEntry(entry string) (host, port string) {
	if host, port, err := net.SplitHostPort(entry); err == nil {
		return host, port
	}
	return strings.Trim(entry, "[]"), ""
}

// CheckURL returns nil if the rules allow a receiver at the URL. It checks the URL alone and resolves
// nothing. The error is [schema.KindInvalidRequest] and never repeats the URL.
func CheckURL(raw string, rules Rules) *schema.Error {
	_, fault := parseURL(raw, rules)
	return fault
}

// target is a checked URL.
type target struct {
	url *url.URL
	// receiver is the host and port for limits per receiver.
	receiver string
}

func parseURL(raw string, rules Rules) (target, *schema.Error) {
	if raw == "" {
		return target{}, bad("is empty: omit it, or write an https URL.")
	}
	if len(raw) > maxURL {
		return target{}, bad("is longer than " + strconv.Itoa(maxURL) + " bytes: shorten it.")
	}
	// Parsers disagree on these characters, so they are refused.
	if strings.ContainsFunc(raw, func(c rune) bool { return c <= ' ' || c > '~' || c == '\\' }) {
		return target{}, bad("has characters that a URL cannot hold: percent-encode them in the path, and write the host in its xn-- form.")
	}
	if strings.Contains(raw, "#") {
		return target{}, bad("has a fragment, which is never sent: remove the part from # on.")
	}
	u, err := url.Parse(raw)
	if err != nil || u.Opaque != "" || u.Host == "" {
		return target{}, bad("is not an absolute URL: write https://host/path.")
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return target{}, bad("does not begin with https://: only https URLs are allowed.")
	}
	authority, _, _ := strings.Cut(raw[len(u.Scheme)+len("://"):], "/")
	authority, _, _ = strings.Cut(authority, "?")
	switch {
	case u.User != nil || strings.Contains(authority, "@"):
		return target{}, bad("has a user or password before the host: remove it; requests are signed instead.")
	case strings.Contains(authority, "%"):
		return target{}, bad("has % in its host: write the host without percent-encoding.")
	case strings.HasSuffix(u.Host, ":"):
		return target{}, bad("has a colon after the host but no port: remove the colon.")
	}
	return lookAt(u, rules)
}

// lookAt checks host, port and scheme.
func lookAt(u *url.URL, rules Rules) (target, *schema.Error) {
	host, port := strings.ToLower(u.Hostname()), 443
	if u.Scheme == "http" {
		port = 80
	}
	if p := u.Port(); p != "" {
		if port = portNumber(p); port == 0 {
			return target{}, bad("has an invalid port: write a number from 1 to 65535.")
		}
	}
	ip, err := netip.ParseAddr(host)
	literal := err == nil
	if !literal && !hostName(host) {
		return target{}, bad("has a host that is neither a name nor an address in its usual form (four decimal numbers, or IPv6 in brackets).")
	}
	local := host == "localhost" || strings.HasSuffix(host, ".localhost")
	vouched := rules.allows(host, port)
	switch {
	case vouched:
	case literal && rules.safe(ip) != nil,
		!rules.AllowPrivate && (local || !literal && !strings.Contains(host, ".")):
		return target{}, bad("points into the internal network: use a public receiver, or ask the operator to allow this host.")
	case port != 80 && port != 443 && !rules.AllowPrivate && !slices.Contains(rules.Ports, port):
		return target{}, bad("has a port other than 80 and 443: use one of these, or ask the operator to allow the host with its port.")
	case u.Scheme == "http" && !(rules.AllowPrivate && (local || literal && addresses.Private(ip))):
		return target{}, bad("does not begin with https://: plain http is only for hosts that the operator allowed.")
	}
	return target{url: u, receiver: net.JoinHostPort(host, strconv.Itoa(port))}, nil
}

func bad(what string) *schema.Error {
	return &schema.Error{Kind: schema.KindInvalidRequest, Detail: "The callback_url " + what}
}

// portNumber returns 0 if s is not a port.
func portNumber(s string) int {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

// hostName reports whether s, in any case, is a name that no resolver takes for an address: some
// read a name whose last label is a number as IPv4.
func hostName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}
