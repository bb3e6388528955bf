package settings

import (
	"strings"
	"time"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/listen"
)

// Worker is the section worker of the configuration.
type Worker struct {
	// Name is the name of this worker for operators.
	Name string `yaml:"name"`
	// Listen is the address for /livez, /readyz and /metrics. If empty, the worker does not serve
	// them; in `callyard up` the front door does.
	Listen string `yaml:"listen"`
	// Labels are the labels of this worker. A server whose entry requires labels runs only on workers
	// that have all of them.
	Labels map[string]string `yaml:"labels"`
	// Servers is the path of the servers file.
	Servers string `yaml:"servers"`
	// APIServers lets the front door add servers to this worker on behalf of callers. Such a caller
	// can run any command as this worker's user.
	APIServers bool `yaml:"api_servers"`
	// Sessions and InFlight are defaults for servers whose entry does not set them.
	Sessions int `yaml:"sessions"`
	InFlight int `yaml:"in_flight"`
	// CallTimeout, StartTimeout and ResultBytes are defaults as well.
	CallTimeout  time.Duration `yaml:"call_timeout"`
	StartTimeout time.Duration `yaml:"start_timeout"`
	ResultBytes  config.Size   `yaml:"result_bytes"`
	// Sandboxes is the container engine for calls of high risk.
	Sandboxes Sandboxes `yaml:"sandboxes"`
	// Attach is the endpoint for programs that serve MCP and attach to this worker.
	Attach Attach `yaml:"attach"`
	// DrainGrace limits the time for running calls when the worker stops.
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// WorkerDefaults returns the default configuration of a worker.
func WorkerDefaults() Worker {
	return Worker{
		Name: "worker", Sessions: 1, InFlight: 128, CallTimeout: time.Minute, StartTimeout: 2 * time.Minute,
		ResultBytes: 64 << 20, DrainGrace: 30 * time.Second,
	}
}

// Validate returns the settings that are invalid; see package config.
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
	// Listen is the address at which programs attach, by WebSocket at /attach/{server}. Each needs a
	// key of its server. If empty, no program can attach.
	Listen string `yaml:"listen"`
	// CertFile and KeyFile are the certificate and key for TLS. If empty, the endpoint serves plain
	// HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
}

// Sandboxes is the section sandboxes of a worker: the container engine and the limits of its use.
// Zero values mean the defaults of package sandbox.
type Sandboxes struct {
	// Engine is the address of the engine, in the syntax of DOCKER_HOST. If empty, it is the value of
	// DOCKER_HOST, or else the usual socket.
	Engine string `yaml:"engine"`
	// Certs is a folder with ca.pem, cert.pem and key.pem for a remote engine.
	Certs string `yaml:"certs"`
	// Containers limits the number of containers, Warm the number of containers that wait for a call,
	// and Starts the number of concurrent starts.
	Containers int `yaml:"containers"`
	Warm       int `yaml:"warm"`
	Starts     int `yaml:"starts"`
	// Forwarder is the image of the egress forwarder, for containers with allowed destinations. If
	// empty, it is callyard/egress-forwarder:local.
	Forwarder string `yaml:"forwarder"`
}
