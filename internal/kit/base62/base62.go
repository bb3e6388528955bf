// Package base62 writes numbers and random text with the digits 0-9, A-Z and a-z.
package base62

import "crypto/rand"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Encode returns the lowest width digits of n.
func Encode(n uint64, width int) string { return string(Append(nil, n, width)) }

// Append appends the lowest width digits of n.
func Append(dst []byte, n uint64, width int) []byte {
	begin := len(dst)
	dst = append(dst, make([]byte, width)...)
	for i := len(dst) - 1; i >= begin; i-- {
		dst[i] = digits[n%uint64(len(digits))]
		n /= uint64(len(digits))
	}
	return dst
}

// Random returns random digits, for secrets. Each has 5.95 bits.
func Random(width int) string {
	out := make([]byte, 0, width)
	raw := make([]byte, width)
	for len(out) < width {
		_, _ = rand.Read(raw) // it never fails
		for _, b := range raw {
			if int(b) < 256/len(digits)*len(digits) && len(out) < width { // larger values would make some digits more likely
				out = append(out, digits[int(b)%len(digits)])
			}
		}
	}
	return string(out)
}
