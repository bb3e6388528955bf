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
	// Keys are the API keys; without any the front door serves loopback only.
	Keys []authn.Key `yaml:"keys"`
	// PublicURL is the address by which callers reach the front door. It is what access
	// tokens are issued for, and the only source of that address.
	PublicURL string `yaml:"public_url"`
	// Issuers sign access tokens that callers may send in place of an API key.
	Issuers []Issuer `yaml:"issuers"`
	// AddServers lets callers add servers with POST /servers. A caller that can
	// do that can start any command on a worker.
	AddServers bool `yaml:"add_servers"`
	// AcceptGroups are the groups of the API keys that can accept changed definitions of
	// tools; empty: every key can.
	AcceptGroups []string `yaml:"accept_groups"`
	// ArgumentBytes is the most the arguments of a call may take.
	ArgumentBytes config.Size `yaml:"argument_bytes"`
	// ArgumentDepth is how deep arguments may nest.
	ArgumentDepth int `yaml:"argument_depth"`
	// CallTimeout is for calls that name no time of their own, MaxTimeout the
	// longest that one may name.
	CallTimeout time.Duration `yaml:"call_timeout"`
	MaxTimeout  time.Duration `yaml:"max_timeout"`
	// MaxQueue is how many calls may wait for one server, MaxWait how long one
	// may wait for a slot, WorkerWait how long when no worker is there.
	MaxQueue   int           `yaml:"max_queue"`
	MaxWait    time.Duration `yaml:"max_wait"`
	WorkerWait time.Duration `yaml:"worker_wait"`
	// BatchesYield paces batches so that single calls stay quick while these come one
	// after the other.
	BatchesYield bool `yaml:"batches_yield"`
	// OpenBatches is how many batches the front doors together may have that have
	// not ended; each front door refuses more.
	OpenBatches int `yaml:"open_batches"`
	// PrincipalInFlight is how many calls one principal may have under way, where no
	// rule of the section limits says; 0 sets no limit.
	PrincipalInFlight int `yaml:"principal_in_flight"`
	// ApproverURL is the address under which people reach the approver's pages; it
	// is told to callers whose call waits for somebody else.
	ApproverURL string `yaml:"approver_url"`
	// Evaluations is a folder with runs of callyard eval that GET /evaluations shows; empty: none.
	Evaluations string `yaml:"evaluations"`
	// Origins are the origins of web pages that may use the front door from a browser
	// (CORS), as "https://app.example.com". The front door's own pages always may.
	Origins []string `yaml:"origins"`
	// Sets are sets of tools that cannot be changed over the API. They may include each
	// other, and no set of the API.
	Sets []toolset.Set `yaml:"sets"`
	// ToolLabels are words of the operator's for tools, by which searches find them.
	ToolLabels ToolLabels `yaml:"tool_labels"`
	// Embeddings rank tools in searches by what they mean.
	Embeddings Embeddings `yaml:"embeddings"`
	// CertFile and KeyFile are the certificate and its key with which it serves TLS;
	// empty: it serves plain HTTP.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ClientCAFile has the authorities of client certificates; empty: clients are not asked for
	// one. Keys with a Certificate say whom they stand for.
	ClientCAFile string `yaml:"client_ca_file"`
	// DrainDelay is how long readiness is red before the front door stops to
	// take connections, so that a load balancer sees it; DrainGrace how long
	// calls under way may take after that.
	DrainDelay time.Duration `yaml:"drain_delay"`
	DrainGrace time.Duration `yaml:"drain_grace"`
}

// FrontDoorDefaults returns the configuration of a front door that was told nothing.
func FrontDoorDefaults() FrontDoor {
	return FrontDoor{
		Listen: "127.0.0.1:8080", ArgumentBytes: 1 << 20, ArgumentDepth: 64,
		CallTimeout: 60 * time.Second, MaxTimeout: time.Hour,
		MaxQueue: 10_000, MaxWait: 30 * time.Second, WorkerWait: 3 * time.Second, BatchesYield: true, OpenBatches: 2000,
		DrainDelay: time.Second, DrainGrace: 30 * time.Second, Embeddings: EmbeddingsDefaults(),
	}
}

// Validate returns the settings that cannot be honoured; see package config.
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

// checkKeys says what is wrong with the API keys of a section.
func checkKeys(keys []authn.Key) (faults config.Collector) {
	for _, f := range authn.CheckKeys(keys) {
		faults.Addf(fmt.Sprintf("keys[%d].%s", f.Index, f.Field), "%s", f.Message)
	}
	return faults
}

// checkSets says what is wrong with the sets of tools of a section.
func checkSets(list []toolset.Set) (faults config.Collector) {
	all := make(toolset.All, len(list))
	for i := range list {
		for _, f := range list[i].Check() {
			faults.Addf(fmt.Sprintf("sets[%d].%s", i, f.Path), "%s", f.Message)
		}
		if all[list[i].Name] != nil {
			faults.Addf(fmt.Sprintf("sets[%d].name", i), "is that of another set; rename one of them.")
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
