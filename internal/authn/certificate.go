package authn

import (
	"crypto/sha256"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// mostNames limits the number of names of a client certificate that are checked.
const mostNames = 32

// addCertificate adds a key that a client certificate identifies. It returns the invalid field and
// the reason, or "".
func (t *table) addCertificate(key *Key, e *entry) (field, wrong string) {
	e.sum = sha256.Sum256([]byte("certificate\x00" + key.Certificate)) // no API key has it; it identifies the entry
	switch u, err := url.Parse(key.Certificate); {
	case key.Hash != "":
		return "hash", "stands next to certificate; remove one of them."
	case len(key.Certificate) > maxCredential || err != nil || strings.TrimSpace(key.Certificate) != key.Certificate:
		return "certificate", "must be a URI such as spiffe://example.org/agent, or a DNS name."
	case u.Scheme == "" && strings.ContainsAny(key.Certificate, "/:*@ "):
		return "certificate", "must be a URI such as spiffe://example.org/agent, or a DNS name without wildcards."
	case t.byCertificate[certificateName(key.Certificate)] != nil:
		return "certificate", "stands for another key; each must have one of its own."
	}
	t.byCertificate[certificateName(key.Certificate)] = e
	return "", ""
}

// certificateName normalizes a name for comparison. DNS names are case-insensitive.
func certificateName(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return strings.ToLower(name)
}

// ClientCertificate returns the verified client certificate of a request, or nil if there is none.
func ClientCertificate(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// OfCertificate returns the principal of a client certificate by its URIs and DNS names. ok is
// false if no key matches one of them. The error is a *schema.Error of KindUnauthenticated for an
// expired key, and for a certificate that matches several keys.
func (k *Keys) OfCertificate(c *x509.Certificate) (who schema.Principal, ok bool, err error) {
	t := k.table.Load()
	var found *entry
	look := func(name string) {
		switch e := t.byCertificate[certificateName(name)]; {
		case e == nil || e == found:
		case found != nil:
			err = schema.Errorf(schema.KindUnauthenticated, "Your client certificate has the names of several keys. Use one with a single name.")
		default:
			found = e
		}
	}
	for i, u := range c.URIs {
		if i < mostNames {
			look(u.String())
		}
	}
	for i, name := range c.DNSNames {
		if i < mostNames {
			look(name)
		}
	}
	if found == nil || err != nil {
		return who, found != nil, err
	}
	return found.principal, true, found.valid()
}
