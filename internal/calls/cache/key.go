package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// key is what two calls have in common that may have the same result.
type key [sha256.Size]byte

// flightKey is what they have in common when they may share one run.
type flightKey struct {
	key
	timeout time.Duration
	noStore bool
}

// keyOf is a digest of the call. Each part has its length before it, so that no
// two calls run into each other.
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
	if b = append(b, 0); !sharedByAll {
		b[len(b)-1] = 1
		part(call.Principal.Name)
	} else if tenant := call.Principal.Tenant.Stored(); tenant != "" {
		b[len(b)-1] = 2
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
