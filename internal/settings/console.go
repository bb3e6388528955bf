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
}

// Validate returns the settings that cannot be honoured; see package config.
func (c Console) Validate() []config.Fault {
	var faults config.Collector
	for _, one := range []struct{ key, value, example string }{{"front_door", c.FrontDoor, "https://callyard.example.com"}, {"environments", c.Environments, "http://127.0.0.1:8090"}} {
		u, err := url.Parse(one.value)
		if one.value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "") {
			faults.Addf(one.key, "must be a URL such as %s, without a path.", one.example)
		}
	}
	return faults
}
