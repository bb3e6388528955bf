package settings

import (
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/listen"
)

// Worker is the section worker of the configuration.
type Worker struct {
	// Name is what operators call this worker.
	Name string `yaml:"name"`
	// Listen is an address for /livez, /readyz and /metrics; empty: none. The
	// front door of `callyard up` has them already.
	Listen string `yaml:"listen"`
	// Labels are what this worker carries. A server whose entry asks for labels
	// is held only by workers that carry all of them.
	Labels map[string]string `yaml:"labels"`
	// Servers names the servers file.
	Servers string `yaml:"servers"`
	// APIServers lets the front door add servers here on behalf of callers.
	// Whoever may do that can run any command as this worker's user.
	APIServers bool `yaml:"api_servers"`
	// Sessions and InFlight are for servers whose entry does not say.
	Sessions int `yaml:"sessions"`
	InFlight int `yaml:"in_flight"`
	// CallTimeout, StartTimeout and ResultBytes likewise.
	CallTimeout  time.Duration `yaml:"call_timeout"`
	StartTimeout time.Duration `yaml:"start_timeout"`
	ResultBytes  config.Size   `yaml:"result_bytes"`
	// Sandboxes is the container engine for calls of high risk.
	Sandboxes Sandboxes `yaml:"sandboxes"`
	// Attach is where programs attach that serve MCP by themselves.
	Attach Attach `yaml:"attach"`
	// DrainGrace is how long running calls may take when the worker stops.
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// WorkerDefaults returns the configuration of a worker that was told nothing.
func WorkerDefaults() Worker {
	return Worker{
		Name: "worker", Sessions: 1, InFlight: 128, CallTimeout: time.Minute, StartTimeout: 2 * time.Minute,
		ResultBytes: 64 << 20, DrainGrace: 30 * time.Second,
	}
}

// Validate returns the settings that cannot be honoured; see package config.
func (c Worker) Validate() []config.Fault {
	var faults config.Collector
	between := func(key string, v, least, most int64) {
		if v < least || v > most {
			faults.Addf(key, "must be between %d and %d.", least, most)
		}
	}
	if c.Name == "" || strings.ContainsFunc(c.Name, func(r rune) bool { return r < '!' || r > '~' }) || len(c.Name) > 40 {
		faults.Addf("name", "must be 1 to 40 printable ASCII characters without spaces.")
	}
	if c.Listen != "" {
		faults.Address("listen", c.Listen)
	}
	between("sessions", int64(c.Sessions), 1, 1000)
	between("in_flight", int64(c.InFlight), 1, 10_000)
	between("result_bytes", int64(c.ResultBytes), 1<<10, 1<<30)
	between("call_timeout", int64(c.CallTimeout/time.Millisecond), 1, int64(24*time.Hour/time.Millisecond))
	if c.Attach.Listen != "" {
		faults.Address("attach.listen", c.Attach.Listen)
	}
	for _, f := range listen.Validate(c.Attach.CertFile, c.Attach.KeyFile) {
		faults.Addf("attach."+f.Path, "%s", f.Message)
	}
	between("sandboxes.containers", int64(c.Sandboxes.Containers), 0, 10_000)
	between("sandboxes.warm", int64(c.Sandboxes.Warm), 0, 10_000)
	between("sandboxes.starts", int64(c.Sandboxes.Starts), 0, 1000)
	between("start_timeout", int64(c.StartTimeout/time.Millisecond), 1, int64(time.Hour/time.Millisecond))
	return faults
}

// Attach is the section attach of a worker.
type Attach struct {
	// Listen is the address at which programs attach, by WebSocket at
	// /attach/{server}; empty: none. Each needs a key of its server.
	Listen string `yaml:"listen"`
	// CertFile and KeyFile are the certificate and its key with which it serves TLS;
	// empty: it serves plain HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Sandboxes is the section sandboxes of a worker: the container engine, and what it may
// be asked for. Zero values mean the defaults of package sandbox.
type Sandboxes struct {
	// Engine is where it listens, as DOCKER_HOST has it; empty means what
	// DOCKER_HOST says, else the usual socket.
	Engine string `yaml:"engine"`
	// Certs is a folder with ca.pem, cert.pem and key.pem, for an engine elsewhere.
	Certs string `yaml:"certs"`
	// Containers is the number that may exist at once, Warm the number of them that may
	// wait for a call, and Starts the number that start at the same time.
	Containers int `yaml:"containers"`
	Warm       int `yaml:"warm"`
	Starts     int `yaml:"starts"`
	// Forwarder is the image of the forwarder, for containers that may reach some places;
	// empty means callyard/egress-forwarder:local.
	Forwarder string `yaml:"forwarder"`
}
