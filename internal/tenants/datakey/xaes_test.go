package datakey

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors are those of the specification, one for each value of the highest bit of the
// block that CMAC doubles.
func TestXAESIsThatOfTheSpecification(t *testing.T) {
	for _, c := range []struct {
		key         byte
		place, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newXAES(bytes.Repeat([]byte{c.key}, keyBytes))
		if err != nil {
			t.Fatal(err)
		}
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		got, err := x.sealWith(nil, nonce, []byte("XAES-256-GCM"), []byte(c.place))
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("key %d: %x, %v", c.key, got, err)
		}
		if plain, err := x.open(append(nonce, got...), []byte(c.place)); err != nil || string(plain) != "XAES-256-GCM" {
			t.Errorf("key %d: %q, %v", c.key, plain, err)
		}
	}
}
