package settings

import (
	"net/url"
	"strings"

	"github.com/callyard/callyard/internal/config"
)

// Console is the section approver.console of the configuration.
type Console struct {
	// FrontDoor is the address of the front door that the console shows. If empty, an approver process
	// has no console, and callyard up shows its own front door.
	FrontDoor string `yaml:"front_door"`
	// Groups may use the console if people sign in. If empty, no user may.
	Groups []string `yaml:"groups"`
	// Environments is the address of a callyard env whose episodes the console shows. If empty, it
	// shows none.
	Environments string `yaml:"environments"`
	// TraceURL is the address of a trace in a trace viewer, with the placeholder {trace_id}. The page
	// of a call links to it. If empty, the page shows only the trace id.
	TraceURL string `yaml:"trace_url"`
}

// traceIDHere is the placeholder in [Console.TraceURL].
const traceIDHere = "{trace_id}"

// Validate returns the settings that are invalid; see package config.
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

// traceURL reports whether a text is the address of a trace and has the placeholder.
func traceURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return false
	}
	return strings.Count(text, traceIDHere) == 1 && !strings.Contains(u.Host, traceIDHere)
}
