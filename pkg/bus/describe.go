package bus

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// AnnounceEvery is how often workers and routers announce themselves.
const AnnounceEvery = time.Second

// Methods of the fabric's own, asked of a worker; they never reach a server.
const (
	// MethodDescribe asks for the definitions of a server: a [Description].
	MethodDescribe = "callyard/describe"
	// MethodStart asks to hold a server; the payload is its entry in the shape
	// of the servers file, with its id.
	MethodStart = "callyard/start-server"
	// MethodStop asks to end a server that came by MethodStart.
	MethodStop = "callyard/stop-server"
	// MethodRestart asks to replace a server by a new start of itself.
	MethodRestart = "callyard/restart-server"
	// MethodDrain asks the worker to drain and end; it is about no server.
	MethodDrain = "callyard/drain-worker"
	// MethodOpenLease asks to keep a process of a server for one holder; the payload is a
	// [LeaseRequest]. Calls that name the lease run there. MethodCloseLease ends it, and
	// MethodLeaseDigest asks for the digest of its directory, as a JSON text.
	// MethodLeaseSnapshot asks to keep a copy of the directory under its digest, which is
	// the answer.
	MethodOpenLease     = "callyard/open-lease"
	MethodCloseLease    = "callyard/close-lease"
	MethodLeaseDigest   = "callyard/lease-digest"
	MethodLeaseSnapshot = "callyard/lease-snapshot"
)

// UnusableState begins the answer to [MethodLeaseDigest] about a directory that has no digest
// because of what its holder did, such as too many files in it. The reason follows.
const UnusableState = "unusable: "

// LeaseRequest is the payload of requests for leases.
type LeaseRequest struct {
	// ID is chosen by the holder, and no other holder ever has it.
	ID string `json:"id"`
	// Seed is told to the process of a lease that is opened, where its server is started
	// with one. Snapshot is the digest of the state that it begins with; "" is the usual one.
	Seed     int64  `json:"seed,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
}

// Description is the answer to [MethodDescribe]. Definitions is nil until the
// worker has read them.
type Description struct {
	Digest      string              `json:"digest"`
	Definitions *schema.Definitions `json:"definitions"`
}

// Encode returns d as JSON in which every definition stands byte for byte as the
// server sent it. encoding/json would take out white space and escape "<".
func (d *Description) Encode() []byte {
	b := append(strconv.AppendQuote([]byte(`{"digest":`), d.Digest), `,"definitions":`...)
	if d.Definitions == nil {
		return append(b, "null}"...)
	}
	b = appendList(append(b, '{'), "tools", d.Definitions.Tools)
	b = appendList(append(b, ','), "resources", d.Definitions.Resources)
	b = appendList(append(b, ','), "resource_templates", d.Definitions.ResourceTemplates)
	b = appendList(append(b, ','), "prompts", d.Definitions.Prompts)
	if len(d.Definitions.About) > 0 {
		b = append(append(b, `,"about":`...), d.Definitions.About...)
	}
	return append(b, "}}"...)
}

func appendList(b []byte, name string, list []json.RawMessage) []byte {
	b = append(strconv.AppendQuote(b, name), ':')
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, raw := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, raw...)
	}
	return append(b, ']')
}
