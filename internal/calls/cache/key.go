package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// key is equal for calls that may share a cached result.
type key [sha256.Size]byte

// flightKey is equal for calls that may share one run.
type flightKey struct {
	key
	timeout time.Duration
	noStore bool
}

// keyOf returns a digest of the call. Each part is preceded by its length, so that different calls
// have different inputs.
func keyOf(call *schema.Call, sharedByAll bool) (k key) {
	var space [512]byte
	b := space[:0]
	part := func(text string) {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	part(string(call.Server))
	part(call.Tool)
	part(call.ToolDigest)
	var of byte // the parts that follow
	tenant := call.Principal.Tenant.Stored()
	if !sharedByAll {
		of |= 1
	}
	if tenant != "" {
		of |= 2
	}
	if b = append(b, of); !sharedByAll {
		part(call.Principal.Name)
	}
	if tenant != "" {
		part(string(tenant))
	}
	if len(call.Arguments) <= cap(b)-len(b) {
		return sha256.Sum256(append(b, call.Arguments...))
	}
	sum := sha256.New()
	sum.Write(b)
	sum.Write(call.Arguments)
	sum.Sum(k[:0])
	return k
}
