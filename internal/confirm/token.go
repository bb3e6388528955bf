package confirm

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

const (
	prefix = "cyt_"
	secret = 32 // bytes
	// maxID is the maximum length of the approval id in a token.
	maxID = 64
)

var secretLen = base64.RawURLEncoding.EncodedLen(secret)

// newToken returns a token of an approval.
func newToken(approvalID schema.ApprovalID) string {
	var b [secret]byte
	_, _ = rand.Read(b[:]) // it never fails
	return prefix + string(approvalID) + "_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash returns the hex SHA-256 of a token, the only form in which it may be stored or logged.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ApprovalOf returns the approval id in a token, or "" if the text does not have the form of
// a token. It does not verify the token.
func ApprovalOf(token string) schema.ApprovalID {
	rest, ok := strings.CutPrefix(token, prefix)
	cut := len(rest) - secretLen - 1
	if !ok || cut < 1 || rest[cut] != '_' || !plainID(schema.ApprovalID(rest[:cut])) {
		return ""
	}
	raw := rest[cut+1:]
	if _, err := base64.RawURLEncoding.Strict().DecodeString(raw); err != nil || strings.ContainsAny(raw, "\r\n") {
		return ""
	}
	return schema.ApprovalID(rest[:cut])
}

func plainID(id schema.ApprovalID) bool {
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return id != "" && len(id) <= maxID
}
