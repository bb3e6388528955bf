package settings

import (
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Console is the section approver.console of the configuration.
type Console struct {
	// FrontDoor is the address of the front door that the console shows; empty: at an
	// approver process there is no console, and callyard up shows its own front door.
	FrontDoor string `yaml:"front_door"`
	// Groups are those whose members may use the console where people sign in. Without any,
	// nobody may.
	Groups []string `yaml:"groups"`
	// Environments is the address of a callyard env whose episodes the console shows; empty:
	// none.
	Environments string `yaml:"environments"`
	// TraceURL is the address of a trace in the viewer of traces, with {trace_id} where the id
	// of the trace stands. The page of a call links to it; empty: it shows the id only.
	TraceURL string `yaml:"trace_url"`
}

// traceIDHere is where the id of a trace stands in [Console.TraceURL].
const traceIDHere = "{trace_id}"

// Validate returns the settings that cannot be honoured; see package config.
func (c Console) Validate() []config.Fault {
	var faults config.Collector
	for _, one := range []struct{ key, value, example string }{{"front_door", c.FrontDoor, "https://callyard.example.com"}, {"environments", c.Environments, "http://127.0.0.1:8090"}} {
		u, err := url.Parse(one.value)
		if one.value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "") {
			faults.Addf(one.key, "must be a URL such as %s, without a path.", one.example)
		}
	}
	if c.TraceURL != "" && !traceURL(c.TraceURL) {
		faults.Addf("trace_url", "must be an http:// or https:// URL without user and password that contains %s once, after its host, such as https://jaeger.example.com/trace/%s.", traceIDHere, traceIDHere)
	}
	return faults
}

// traceURL says that a text is the address of a trace, with a place for its id.
func traceURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return false
	}
	return strings.Count(text, traceIDHere) == 1 && !strings.Contains(u.Host, traceIDHere)
}
