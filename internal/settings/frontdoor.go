package settings

import (
	"fmt"
	"time"

	"github.com/callyard/callyard/internal/authn"
	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/listen"
	"github.com/callyard/callyard/internal/toolset"
)

// FrontDoor is the section front_door of the configuration.
type FrontDoor struct {
	// Listen is the address of the REST API.
	Listen string `yaml:"listen"`
	// Keys are the API keys. Without any, the front door listens on loopback only.
	Keys []authn.Key `yaml:"keys"`
	// PublicURL is the address of the front door for callers. Access tokens must be issued for it. No
	// other setting or request can change that address.
	PublicURL string `yaml:"public_url"`
	// Issuers sign access tokens, which callers may send instead of an API key.
	Issuers []Issuer `yaml:"issuers"`
	// AddServers lets callers add servers with POST /servers. Such a caller can run any command on a
	// worker.
	AddServers bool `yaml:"add_servers"`
	// AcceptGroups are the groups whose API keys can accept changed tool definitions. If empty, every
	// key can.
	AcceptGroups []string `yaml:"accept_groups"`
	// ArgumentBytes limits the size of the arguments of a call.
	ArgumentBytes config.Size `yaml:"argument_bytes"`
	// ArgumentDepth limits the nesting of arguments.
	ArgumentDepth int `yaml:"argument_depth"`
	// CallTimeout is the default timeout of calls. MaxTimeout is the longest timeout that a call may
	// request.
	CallTimeout time.Duration `yaml:"call_timeout"`
	MaxTimeout  time.Duration `yaml:"max_timeout"`
	// MaxQueue limits the number of calls that wait for one server. MaxWait limits the time that a
	// call waits for a slot, and WorkerWait the time if no worker is available.
	MaxQueue   int           `yaml:"max_queue"`
	MaxWait    time.Duration `yaml:"max_wait"`
	WorkerWait time.Duration `yaml:"worker_wait"`
	// BatchesYield slows batches down so that single calls that follow each other stay fast.
	BatchesYield bool `yaml:"batches_yield"`
	// OpenBatches limits the number of unfinished batches of all front doors together. Each front door
	// refuses more.
	OpenBatches int `yaml:"open_batches"`
	// PrincipalInFlight limits the concurrent calls of a principal that no rule of the section limits
	// matches. 0 means no limit.
	PrincipalInFlight int `yaml:"principal_in_flight"`
	// ApproverURL is the address of the approver's pages. Callers whose call waits for an approver
	// receive it.
	ApproverURL string `yaml:"approver_url"`
	// Evaluations is a folder of callyard eval runs, which GET /evaluations lists. If empty, it lists
	// none.
	Evaluations string `yaml:"evaluations"`
	// Origins are the origins of web pages that may call the front door from a browser (CORS), such as
	// "https://app.example.com". The front door's own pages always may.
	Origins []string `yaml:"origins"`
	// Sets are sets of tools that the API cannot change. They may include each other, but no set of
	// the API.
	Sets []toolset.Set `yaml:"sets"`
	// ToolLabels are words that operators give to tools, so that searches find them.
	ToolLabels ToolLabels `yaml:"tool_labels"`
	// Embeddings rank tools in searches by meaning.
	Embeddings Embeddings `yaml:"embeddings"`
	// CertFile and KeyFile are the certificate and key for TLS. If empty, the front door serves plain
	// HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile holds the authorities of client certificates. If empty, no client certificate is
	// requested. Keys with a Certificate map it to a principal.
	ClientCAFile string `yaml:"client_ca_file"`
	// DrainDelay is the time for which the front door reports not ready before it stops accepting
	// connections, so that a load balancer notices. DrainGrace limits the time for calls in flight
	// after that.
	DrainDelay time.Duration `yaml:"drain_delay"`
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// FrontDoorDefaults returns the default configuration of a front door.
func FrontDoorDefaults() FrontDoor {
	return FrontDoor{
		Listen: "127.0.0.1:8080", ArgumentBytes: 1 << 20, ArgumentDepth: 64,
		CallTimeout: 60 * time.Second, MaxTimeout: time.Hour,
		MaxQueue: 10_000, MaxWait: 30 * time.Second, WorkerWait: 3 * time.Second, BatchesYield: true, OpenBatches: 2000,
		DrainDelay: time.Second, DrainGrace: 30 * time.Second, Embeddings: EmbeddingsDefaults(),
	}
}

// Validate returns the settings that are invalid; see package config.
func (c FrontDoor) Validate() []config.Fault {
	var faults config.Collector
	if faults.Address("listen", c.Listen) && len(c.Keys)+len(c.Issuers) == 0 && !config.Loopback(c.Listen) {
		faults.Addf("listen", "is %s, which others can reach, and there are no API keys: add front_door.keys (callyard keys new creates one), or listen on 127.0.0.1.", c.Listen)
	}
	faults = append(faults, checkKeys(c.Keys)...)
	faults = append(faults, c.checkIssuers()...)
	faults = append(faults, checkSets(c.Sets)...)
	c.ToolLabels.validate(&faults)
	c.Embeddings.validate(&faults)
	faults = append(faults, listen.Validate(c.CertFile, c.KeyFile)...)
	if c.ClientCAFile != "" && c.CertFile == "" {
		faults.Addf("client_ca_file", "needs TLS: set cert_file and key_file, or omit client_ca_file.")
	}
	for i, key := range c.Keys {
		if key.Certificate != "" && c.ClientCAFile == "" {
			faults.Addf(fmt.Sprintf("keys[%d].certificate", i), "needs client_ca_file: without it clients are not asked for certificates.")
		}
	}
	faults.Positive("argument_bytes", c.ArgumentBytes > 0)
	faults.Positive("argument_depth", c.ArgumentDepth > 0)
	faults.Positive("call_timeout", c.CallTimeout > 0)
	faults.Positive("max_timeout", c.MaxTimeout > 0)
	faults.Positive("max_queue", c.MaxQueue > 0)
	faults.Positive("max_wait", c.MaxWait > 0)
	faults.Positive("open_batches", c.OpenBatches > 0)
	if c.CallTimeout > c.MaxTimeout {
		faults.Addf("call_timeout", "exceeds max_timeout; decrease it, or increase max_timeout.")
	}
	if c.PrincipalInFlight < 0 {
		faults.Addf("principal_in_flight", "is negative; 0 sets no limit.")
	}
	return faults
}

// checkKeys returns the faults of the API keys of a section.
func checkKeys(keys []authn.Key) (faults config.Collector) {
	for _, f := range authn.CheckKeys(keys) {
		faults.Addf(fmt.Sprintf("keys[%d].%s", f.Index, f.Field), "%s", f.Message)
	}
	return faults
}

// checkSets returns the faults of the sets of tools of a section.
func checkSets(list []toolset.Set) (faults config.Collector) {
	all := make(toolset.All, len(list))
	for i := range list {
		for _, f := range list[i].Check() {
			faults.Addf(fmt.Sprintf("sets[%d].%s", i, f.Path), "%s", f.Message)
		}
		if all[list[i].Name] != nil {
			faults.Addf(fmt.Sprintf("sets[%d].name", i), "is used by another set; rename one of them.")
		}
		all[list[i].Name] = &list[i]
	}
	for i := range list {
		if why := all.Check(list[i].Name, nil); why != "" && len(faults) == 0 {
			faults.Addf(fmt.Sprintf("sets[%d]", i), "cannot be composed. %s", why)
		}
	}
	return faults
}
