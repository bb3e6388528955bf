package config

import "slices"

// TypeAttach is the type of a server whose programs attach to the worker.
const TypeAttach = "attach"

// Attach holds the settings of the programs that may attach as a server.
type Attach struct {
	// Keys are hashes of keys that allow attaching as this server only. Package authn checks them.
	Keys []string
}

// attached checks the settings of a server that programs attach to.
func (r *serverReader) attached(d *draft, e *ServerEntry) {
	s := &d.shape
	e.Attach = &Attach{Keys: slices.Clone(s.AttachKeys)}
	if !s.Attach {
		r.fault(d, "attach", "is false; write true, or remove it and give the server a command or a url.")
	}
	if len(s.AttachKeys) == 0 {
		r.fault(d, "attach_keys", "is missing: programs need a key. \"callyard keys attach %s\" makes one and prints this entry.", d.id)
	}
	for _, key := range []string{"docker", "sandbox", "bubblewrap"} {
		if d.has(key) {
			r.fault(d, key, "an attached program is not started here and cannot run in a container; remove it.")
		}
	}
	if s.RiskLevel == 3 {
		r.fault(d, "riskLevel", "3 requires a container, and an attached program is not started here; write 1 or 2.")
	}
	for _, key := range []string{"onDemand", "idleStop"} {
		if d.has(key) {
			r.fault(d, key, "programs attach by themselves and are not started here; remove it.")
		}
	}
	if r.path == "" {
		r.fault(d, "attach", "cannot be set in a request; the operator adds the server to the servers file.")
	}
}

// onlyForAttach reports keys of attached servers in the entry of another kind.
func (r *serverReader) onlyForAttach(d *draft, kind string) {
	if kind != TypeAttach {
		r.onlyFor(d, TypeAttach, "attach_keys")
	}
}
