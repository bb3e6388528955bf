package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

const (
	keyBytes = 32
	sealedV1 = 1
	nameSize = 8
	// overhead is the size of a random nonce and a tag.
	overhead = 12 + 16
)

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// place encodes the place of a row. The parts are unambiguous.
func place(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// errUnreadable means that a row was not sealed here, or for another place.
var errUnreadable = errors.New("the stored data cannot be decrypted")

// seal encrypts a row for its place:
//
//	version | name of the wrapping key | wrapped data key | ciphertext
func (k *Keys) seal(plain, place []byte) ([]byte, error) {
	data := make([]byte, keyBytes)
	_, _ = rand.Read(data)
	aead, err := newAEAD(data)
	if err != nil {
		return nil, err
	}
	with := k.list()[0]
	out := append([]byte{sealedV1}, with.name[:]...)
	out = with.aead.Seal(out, nil, data, place)   //nolint:gosec // the AEAD makes a random nonce
	return aead.Seal(out, nil, plain, place), nil //nolint:gosec // as above
}

// Seal encrypts a row of another package for a place, which consists of that package's parts. Such
// a row cannot be opened as a person's credential, nor the other way round. It is safe for
// concurrent use.
func (k *Keys) Seal(plain []byte, parts ...string) ([]byte, error) {
	return k.seal(plain, place(append([]string{foreign}, parts...)...))
}

// Open decrypts a result of Seal for the same place. An error means that the place is different or
// the key is gone.
func (k *Keys) Open(sealed []byte, parts ...string) ([]byte, error) {
	return k.open(sealed, place(append([]string{foreign}, parts...)...))
}

// foreign is the first part of the places of other packages. No server can have that name.
const foreign = "\x00another package"

// missingKeyError reports that the key of a row is missing. It is an errUnreadable.
type missingKeyError struct{ name string }

func (e *missingKeyError) Error() string {
	return fmt.Sprintf("its key %s is not in the key file", e.name)
}

func (e *missingKeyError) Unwrap() error { return errUnreadable }

// open decrypts a row.
func (k *Keys) open(sealed, place []byte) ([]byte, error) {
	const wrapped = keyBytes + overhead
	if len(sealed) < 1+nameSize+wrapped+overhead || sealed[0] != sealedV1 {
		return nil, errUnreadable
	}
	name, rest := sealed[1:1+nameSize], sealed[1+nameSize:]
	with, ok := k.find(name)
	if !ok {
		return nil, &missingKeyError{hex.EncodeToString(name)}
	}
	data, err := with.aead.Open(nil, nil, rest[:wrapped], place)
	if err != nil {
		return nil, errUnreadable
	}
	aead, err := newAEAD(data)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, rest[wrapped:], place)
	if err != nil {
		return nil, errUnreadable
	}
	return plain, nil
}
