package oauth

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// assertionTime is the lifetime of an assertion.
const assertionTime = time.Minute

// Key authenticates a client with a signature (RFC 7523, section 2.2).
type Key struct {
	private crypto.Signer
	signer  jose.Signer
}

// String hides the key.
func (*Key) String() string { return "[a private key]" }

// ParseKey parses a private key in PEM. id becomes the kid of the header, and algorithm its alg. An
// empty id is omitted, and an empty algorithm is chosen by the key.
func ParseKey(text []byte, id, algorithm string) (*Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it contains no private key in PEM")
	}
	var parsed any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, errors.New("its private key cannot be read")
	}
	k := &Key{}
	var fits []string
	switch key := parsed.(type) {
	case *ecdsa.PrivateKey:
		k.private = key
		fits = []string{map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[key.Curve.Params().Name]}
	case *rsa.PrivateKey:
		if key.N.BitLen() < 2048 {
			return nil, errors.New("its RSA key is shorter than 2048 bits")
		}
		k.private, fits = key, []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case ed25519.PrivateKey:
		k.private, fits = key, []string{"EdDSA"}
	default:
		return nil, errors.New("its private key is of an unknown kind")
	}
	algorithm = cmp.Or(algorithm, fits[0])
	if !slices.Contains(fits, algorithm) || algorithm == "" {
		return nil, errors.New("its private key does not fit the algorithm")
	}
	opts := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		opts = opts.WithHeader("kid", id)
	}
	if k.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: k.private}, opts); err != nil {
		return nil, errors.New("its private key cannot be used")
	}
	return k, nil
}

// assertion authenticates the client id to one token endpoint.
func (k *Key) assertion(client, endpoint, issuer string) (string, error) {
	now := time.Now()
	// draft-ietf-oauth-rfc7523bis: the audience is the issuer. Older servers expect the token
	// endpoint, which is used if no issuer is known.
	claims, err := json.Marshal(map[string]any{
		"iss": client, "sub": client, "aud": cmp.Or(issuer, endpoint), "jti": rand.Text(),
		"iat": now.Unix(), "exp": now.Add(assertionTime).Unix(),
	})
	if err == nil {
		var signed *jose.JSONWebSignature
		if signed, err = k.signer.Sign(claims); err == nil {
			return signed.CompactSerialize()
		}
	}
	return "", errors.New("the assertion of the client could not be signed")
}
