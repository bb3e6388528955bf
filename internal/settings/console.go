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
}

// Validate returns the settings that cannot be honoured; see package config.
func (c Console) Validate() []config.Fault {
	if c.FrontDoor == "" {
		return nil
	}
	u, err := url.Parse(c.FrontDoor)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return []config.Fault{config.Faultf("front_door", "must be a URL such as https://callyard.example.com, without a path.")}
	}
	return nil
}
