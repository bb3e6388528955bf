package datakey

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
)

const (
	keyBytes   = 32
	nonceBytes = 24
	tagBytes   = 16
)

// xaes is XAES-256-GCM as C2SP specifies it (https://c2sp.org/XAES-256-GCM): AES-256-GCM under
// a key that is derived for each nonce. Its nonces are long enough to be random for as many
// messages as a tenant stores, where those of AES-GCM are for 2^32.
type xaes struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // of CMAC
}

func newXAES(key []byte) (*xaes, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	x := &xaes{block: block}
	block.Encrypt(x.k1[:], x.k1[:])
	var msb byte
	for i := len(x.k1) - 1; i >= 0; i-- {
		msb, x.k1[i] = x.k1[i]>>7, x.k1[i]<<1|msb
	}
	x.k1[len(x.k1)-1] ^= byte(subtle.ConstantTimeByteEq(msb, 1)) * 0b10000111
	return x, nil
}

// derived is the AEAD of a nonce of which the first half was used for its key.
func (x *xaes) derived(nonce []byte) (cipher.AEAD, error) {
	var key [keyBytes]byte
	for i := range 2 {
		half := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		half[1], half[2] = byte(i+1), 'X'
		copy(half[4:], nonce[:12])
		subtle.XORBytes(half, half, x.k1[:])
		x.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal appends a random nonce and the ciphertext to dst.
func (x *xaes) seal(dst, plain, place []byte) ([]byte, error) {
	var nonce [nonceBytes]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	return x.sealWith(append(dst, nonce[:]...), nonce[:], plain, place)
}

func (x *xaes) sealWith(dst, nonce, plain, place []byte) ([]byte, error) {
	aead, err := x.derived(nonce)
	if err != nil {
		return nil, err
	}
	return aead.Seal(dst, nonce[12:], plain, place), nil
}

var errShort = errors.New("it is truncated")

// open returns what seal appended.
func (x *xaes) open(sealed, place []byte) ([]byte, error) {
	if len(sealed) < nonceBytes+tagBytes {
		return nil, errShort
	}
	aead, err := x.derived(sealed[:nonceBytes])
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, sealed[12:nonceBytes], sealed[nonceBytes:], place)
}
