package warrant

import (
	"crypto/ed25519"
	"fmt"
	"slices"
)

// domain begins what is signed, so that a signature over anything else that the
// key may ever sign is no warrant; domain1 is that of version 1.
const (
	domain  = "callyard warrant 2\x00"
	domain1 = "callyard warrant 1\x00"
)

// Signer signs warrants with one key. It is safe for concurrent use.
type Signer struct {
	key  ed25519.PrivateKey
	id   string
	may  []How
	made *made // nil where nobody who checks shares the process
}

// NewSigner returns a signer that signs for the ways named and for no other.
func NewSigner(key ed25519.PrivateKey, may ...How) *Signer {
	return &Signer{key: key, id: KeyID(key.Public().(ed25519.PublicKey)), may: may}
}

// Here returns the signer for a process that checks warrants too: a [Trust] that
// it is added to with [Trust.AddSigner] need not verify what it, or a signer made
// from it with [Signer.For], has just signed.
func (s *Signer) Here() *Signer {
	return &Signer{key: s.key, id: s.id, may: s.may, made: new(made)}
}

// KeyID names the key; see [KeyID].
func (s *Signer) KeyID() string { return s.id }

// For returns a signer with the same key that signs for the ways named only.
func (s *Signer) For(may ...How) *Signer {
	return &Signer{key: s.key, id: s.id, may: may, made: s.made}
}

// Sign returns the warrant for c, whose KeyID it sets. The error says that this
// signer does not sign for c.How, or that c cannot be written: a digest that is
// none, a level beyond 1 to 3, a deadline before Issued, no requirement, texts that
// are too long.
func (s *Signer) Sign(c Claims) ([]byte, error) {
	if !slices.Contains(s.may, c.How) {
		return nil, fmt.Errorf("signing a warrant: this process does not sign for %q", c.How)
	}
	c.KeyID = s.id
	text, err := c.append(append(make([]byte, 0, 512), domain...))
	if err != nil {
		return nil, fmt.Errorf("signing a warrant: %w", err)
	}
	text = append(text[len(domain):], ed25519.Sign(s.key, text)...)
	if s.made != nil {
		s.made.put(text)
	}
	return text, nil
}
