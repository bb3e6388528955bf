package credential

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

const (
	keyBytes = 32
	sealedV1 = 1
	nameSize = 8
	// overhead is the size of a random nonce and a tag.
	overhead = 12 + 16
)

// Keys holds the operator's keys, which wrap the keys of rows. The first wraps new rows. The others
// only unwrap existing rows.
type Keys struct{ all []wrapping }

type wrapping struct {
	name [nameSize]byte // derived from its digest
	aead cipher.AEAD
}

// String hides the keys.
func (*Keys) String() string { return "[keys]" }

// CheckKeyFiles returns the faults in the content of the files credentials.key_file and
// encryption.key_file; "" means that there is no such file. Unreadable files are not reported here,
// because that check covers every file of the configuration.
func CheckKeyFiles(credentials, encryption string) (faults []config.Fault) {
	for _, f := range []struct{ key, file string }{{"credentials.key_file", credentials}, {"encryption.key_file", encryption}} {
		var unread *fs.PathError
		if f.file == "" {
			continue
		}
		if _, err := LoadKeys(f.file); err != nil && !errors.As(err, &unread) {
			faults = append(faults, config.Faultf(f.key, "%v.", err))
		}
	}
	return faults
}

// LoadKeys reads a file of 32-byte keys in base64, one per line. To rotate, add the new key as the
// first line.
func LoadKeys(file string) (*Keys, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	k := &Keys{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != keyBytes {
			return nil, fmt.Errorf("line %d of %s is not a key: 32 random bytes in base64, as `openssl rand -base64 32` prints them", i+1, file)
		}
		if err := k.add(raw); err != nil {
			return nil, err
		}
	}
	if len(k.all) == 0 {
		return nil, fmt.Errorf("%s has no key; write one with `openssl rand -base64 32`", file)
	}
	return k, nil
}

// NewKeys returns an ephemeral key that exists only in this process.
func NewKeys() (*Keys, error) {
	raw := make([]byte, keyBytes)
	_, _ = rand.Read(raw) // it never fails
	k := &Keys{}
	return k, k.add(raw)
}

func (k *Keys) add(raw []byte) error {
	aead, err := newAEAD(raw)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte("callyard credentials\x00"), raw...))
	k.all = append(k.all, wrapping{[nameSize]byte(sum[:nameSize]), aead})
	return nil
}

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
var errUnreadable = errors.New("the stored credential cannot be decrypted")

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
	with := k.all[0]
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

// Newest reports whether a result of Seal is wrapped with the newest key.
func (k *Keys) Newest(sealed []byte) bool {
	return len(sealed) > nameSize && bytes.Equal(sealed[1:1+nameSize], k.all[0].name[:])
}

// foreign is the first part of the places of other packages. No server can have that name.
const foreign = "\x00another package"

// missingKeyError reports that the key of a row is missing. It is an errUnreadable.
type missingKeyError struct{ name string }

func (e *missingKeyError) Error() string {
	return fmt.Sprintf("%v: its key %s is not in the key file", errUnreadable, e.name)
}

func (e *missingKeyError) Unwrap() error { return errUnreadable }

// open decrypts a row.
func (k *Keys) open(sealed, place []byte) ([]byte, error) {
	const wrapped = keyBytes + overhead
	if len(sealed) < 1+nameSize+wrapped+overhead || sealed[0] != sealedV1 {
		return nil, errUnreadable
	}
	name, rest := sealed[1:1+nameSize], sealed[1+nameSize:]
	for _, with := range k.all {
		if !bytes.Equal(with.name[:], name) {
			continue
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
	return nil, &missingKeyError{hex.EncodeToString(name)}
}
