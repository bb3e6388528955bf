package warrant

import (
	"crypto/ed25519"
	"fmt"
	"slices"
)

// domain is the prefix of the signed bytes, so that no other signature of the key is a valid
// warrant. domain1 is the prefix of version 1.
const (
	domain  = "callyard warrant 2\x00"
	domain1 = "callyard warrant 1\x00"
)

// Signer signs warrants with one key. It is safe for concurrent use.
type Signer struct {
	key  ed25519.PrivateKey
	id   string
	may  []Decider
	made *recentWarrants // nil if no verifier shares the process
}

// NewSigner returns a signer that signs only for the given ways of deciding.
func NewSigner(key ed25519.PrivateKey, may ...Decider) *Signer {
	return &Signer{key: key, id: KeyID(key.Public().(ed25519.PublicKey)), may: may}
}

// Here returns the signer for a process that also checks warrants. A [Trust] to which it is added
// with [Trust.AddSigner] need not verify warrants that this signer, or one derived from it with
// [Signer.For], has just signed.
func (s *Signer) Here() *Signer {
	return &Signer{key: s.key, id: s.id, may: s.may, made: new(recentWarrants)}
}

// KeyID returns the id of the signing key; see [KeyID].
func (s *Signer) KeyID() string { return s.id }

// For returns a signer with the same key that signs only for the given ways of deciding.
func (s *Signer) For(may ...Decider) *Signer {
	return &Signer{key: s.key, id: s.id, may: may, made: s.made}
}

// Sign returns the warrant for c and sets c.KeyID. It returns an error if this signer does not
// sign for c.How, or if c cannot be encoded: an invalid digest, a level outside 1 to 3, a
// deadline before Issued, a missing requirement, or texts that are too long.
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
