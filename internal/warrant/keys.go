package warrant

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	keyIDPrefix = "wk_"
	keyIDSize   = 10
	pemPrivate  = "PRIVATE KEY" // PKCS #8
	pemPublic   = "PUBLIC KEY"  // PKIX
	maxKeyFile  = 64 << 10
)

// KeyID returns the id of a public key: "wk_" and the first 20 hex digits of its SHA-256. The id
// serves to look up the key and proves nothing.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return keyIDPrefix + hex.EncodeToString(sum[:keyIDSize])
}

// Generate returns a new key.
func Generate() ed25519.PrivateKey {
	_, key, _ := ed25519.GenerateKey(nil) // it never fails
	return key
}

// EncodePrivate returns the key as PEM (PKCS #8).
func EncodePrivate(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a warrant key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPrivate, Bytes: der}), nil
}

// EncodePublic returns the key as PEM (PKIX).
func EncodePublic(key ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a warrant key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemPublic, Bytes: der}), nil
}

// LoadPrivate reads the private key of a PEM file. Errors name the file but never its content.
func LoadPrivate(path string) (ed25519.PrivateKey, error) {
	blocks, err := blocksOf(path)
	if err != nil {
		return nil, err
	}
	if len(blocks) != 1 || blocks[0].Type != pemPrivate {
		return nil, fmt.Errorf("%s must contain one PEM block %q and nothing else; callyard keys warrant creates such a file", path, pemPrivate)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("the private key in %s is not an Ed25519 key in PKCS #8; callyard keys warrant creates one", path)
	}
	return key, nil
}

// LoadPublic reads the public keys of a PEM file, at least one. Several keys allow a key
// rotation.
func LoadPublic(path string) ([]ed25519.PublicKey, error) {
	blocks, err := blocksOf(path)
	if err != nil {
		return nil, err
	}
	var keys []ed25519.PublicKey
	for _, b := range blocks {
		if b.Type == pemPrivate {
			return nil, fmt.Errorf("%s contains a private key, which only the signing process may have; use the file of its public key", path)
		}
		parsed, err := x509.ParsePKIXPublicKey(b.Bytes)
		key, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok || b.Type != pemPublic {
			return nil, fmt.Errorf("%s must contain Ed25519 keys in PEM blocks %q and nothing else; callyard keys warrant creates such a file", path, pemPublic)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// blocksOf reads the PEM blocks of a file, at least one.
func blocksOf(path string) ([]*pem.Block, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading a warrant key: %w", err)
	}
	if info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s is too large for a file of keys", path)
	}
	rest, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a warrant key: %w", err)
	}
	var blocks []*pem.Block
	for {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		blocks = append(blocks, b)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s contains no key in PEM format; callyard keys warrant creates such a file", path)
	}
	return blocks, nil
}

// Write writes a new key to path, readable only by its owner, and its public half to public.
// Neither file may exist.
func Write(key ed25519.PrivateKey, path, public string) error {
	for _, p := range [...]string{path, public} {
		if _, err := os.Lstat(p); err == nil {
			return fmt.Errorf("%s already exists; keys are never overwritten", p)
		}
	}
	if err := writePrivate(key, path); err != nil {
		return err
	}
	return writePublic(key, public)
}

// LoadOrMake reads the private key at path, or creates it if it does not exist. It also ensures
// that its public half is at public. Concurrent processes all get the same key.
func LoadOrMake(path, public string) (ed25519.PrivateKey, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := writePrivate(Generate(), path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	key, err := LoadPrivate(path)
	if err != nil {
		return nil, err
	}
	if err := writePublic(key, public); err != nil {
		return nil, err
	}
	return key, nil
}

func writePrivate(key ed25519.PrivateKey, path string) error {
	text, err := EncodePrivate(key)
	if err != nil {
		return err
	}
	// Link, because a rename would replace the key that another process has created in the
	// meantime and already signs with.
	return write(path, text, 0o600, os.Link)
}

func writePublic(key ed25519.PrivateKey, path string) error {
	text, err := EncodePublic(key.Public().(ed25519.PublicKey))
	if err != nil {
		return err
	}
	return write(path, text, 0o644, os.Rename)
}

// write writes a file completely or not at all. place moves the temporary file to its name.
func write(path string, text []byte, mode os.FileMode, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".warrant-*")
	if err != nil {
		return fmt.Errorf("writing a warrant key: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // by now it has its final name or is useless
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing a warrant key: %w", err)
	}
	return nil
}
