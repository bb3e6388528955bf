package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// List is the list of allowed destinations. The zero List is empty. Do not change it after first use.
type List struct {
	places []place
}

type place struct {
	text    string // as the operator wrote it
	host    string // in lower case, without the star
	any     bool   // matches every name below host
	port    uint16
	private bool // also allowed if the address is private
}

const (
	mostPlaces = 200
	mostName   = 253
)

// Parse parses destinations: "api.example.com:443", "*.example.com:443" (every name below it, but
// not the name itself), "192.0.2.7:8080", "[2001:db8::7]:8080". The errors are sentences, one for
// each invalid destination.
func Parse(places []string) (List, []error) {
	var l List
	var faults []error
	if len(places) > mostPlaces {
		return l, []error{fmt.Errorf("%d destinations are too many; write at most %d, or combine some with a wildcard.", len(places), mostPlaces)}
	}
	for _, text := range places {
		p, err := parsePlace(text)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		l.places = append(l.places, p)
	}
	return l, faults
}

func parsePlace(text string) (place, error) {
	fault := func(what string) (place, error) {
		return place{}, fmt.Errorf("%q %s; write HOST:PORT, such as \"api.example.com:443\" or \"*.example.com:443\".", text, what)
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fault("has no host with a port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return fault("has no port number")
	}
	p := place{text: text, port: uint16(n)}
	p.host, p.any = strings.CutPrefix(normal(host), "*.")
	if ip, err := netip.ParseAddr(p.host); err == nil {
		if p.any || ip.Zone() != "" {
			return fault("has an address in an unsupported form")
		}
		p.host = ip.Unmap().String()
		return p, nil
	}
	labels := strings.Split(p.host, ".")
	switch last := labels[len(labels)-1]; {
	case len(p.host) > mostName, !isName(labels):
		return fault("names no host")
	case p.any && len(labels) < 2:
		return fault("is too wide")
	case strings.Trim(last, "0123456789") == "":
		return fault("names no host") // some resolvers would read it as an address
	}
	return p, nil
}

// normal returns the normalized form of a host.
func normal(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

func isName(labels []string) bool {
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// AllowPrivate allows private addresses for a destination, given as it was written. It returns
// false if the list does not contain it.
func (l *List) AllowPrivate(text string) bool {
	found := false
	for i := range l.places {
		if l.places[i].text == text {
			l.places[i].private, found = true, true
		}
	}
	return found
}

// Private returns the destinations that are private addresses, as they were written. They are
// refused unless [List.AllowPrivate] allows them.
func (l List) Private() []string {
	var out []string
	for _, p := range l.places {
		if ip, err := netip.ParseAddr(p.host); err == nil && safe(ip, false, nil) != nil {
			out = append(out, p.text)
		}
	}
	return out
}

// Never reports whether a destination of [List.Private] is always refused.
func (l List) Never(text string) bool {
	for _, p := range l.places {
		if ip, err := netip.ParseAddr(p.host); err == nil && p.text == text {
			return safe(ip, true, nil) != nil
		}
	}
	return false
}

// Empty reports whether the list is empty.
func (l List) Empty() bool { return len(l.places) == 0 }

// String returns the list for people.
func (l List) String() string {
	texts := make([]string, len(l.places))
	for i, p := range l.places {
		texts[i] = p.text
	}
	return strings.Join(texts, ", ")
}

// find returns the destination that matches a host and a port.
func (l List) find(host string, port uint16) (place, bool) {
	host = normal(host)
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	var best place
	found := false
	for _, p := range l.places {
		if p.port != port || p.host != host && (!p.any || !strings.HasSuffix(host, "."+p.host)) || p.any && p.host == host {
			continue
		}
		if !found || p.private {
			best, found = p, true
		}
	}
	return best, found
}
