package bus

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/callyard/callyard/pkg/schema"
)

// AnnounceEvery is the interval at which workers and routers announce themselves.
const AnnounceEvery = time.Second

// Callyard's own methods. They are handled by a worker and never sent to a server.
const (
	// MethodDescribe requests the definitions of a server. The response is a [Description].
	MethodDescribe = "callyard/describe"
	// MethodStart adds a server to the worker. The payload is its entry in the format of the
	// servers file, with its id.
	MethodStart = "callyard/start-server"
	// MethodStop removes a server that was added by MethodStart.
	MethodStop = "callyard/stop-server"
	// MethodRestart replaces a server by a new instance of it.
	MethodRestart = "callyard/restart-server"
	// MethodDrain makes the worker drain and exit. It does not refer to a server.
	MethodDrain = "callyard/drain-worker"
	// MethodOpenLease reserves a server process for one holder. The payload is a
	// [LeaseRequest]. Calls with the lease run in this process. MethodCloseLease ends the
	// lease. MethodLeaseDigest returns the digest of its directory as a JSON string.
	// MethodLeaseSnapshot stores a copy of the directory under its digest and returns the
	// digest.
	MethodOpenLease     = "callyard/open-lease"
	MethodCloseLease    = "callyard/close-lease"
	MethodLeaseDigest   = "callyard/lease-digest"
	MethodLeaseSnapshot = "callyard/lease-snapshot"
)

// UnusableState is the prefix of the response to [MethodLeaseDigest] if the directory has no
// digest because of an action of its holder, such as too many files in it. The reason follows.
const UnusableState = "unusable: "

// LeaseRequest is the payload of lease requests.
type LeaseRequest struct {
	// ID is chosen by the holder and unique among all holders.
	ID string `json:"id"`
	// Seed is passed to the process of a new lease, if its server takes a seed at startup.
	// Snapshot is the digest of the initial state. "" means the default state.
	Seed     int64  `json:"seed,omitempty"`
	Snapshot string `json:"snapshot,omitempty"`
}

// Description is the response to [MethodDescribe]. Definitions is nil until the worker has
// read them.
type Description struct {
	Digest      string              `json:"digest"`
	Definitions *schema.Definitions `json:"definitions"`
}

// Encode returns d as JSON that contains every definition byte for byte as the server sent it.
// encoding/json would remove white space and escape "<".
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
