package sandbox

import (
	"bytes"
	_ "embed" // for the profile
	"encoding/json"
)

// The profile is a subset of Moby's; profile_linux_test.go lists the removed rules and generates
// the file. It is passed with every container, so that it does not depend on the default of the
// engine's version.
//
//go:embed profile.json
var profileFile []byte

// profile is the file without white space, because it is sent with each container.
var profile = func() string {
	var small bytes.Buffer
	if err := json.Compact(&small, profileFile); err != nil {
		panic("the embedded seccomp profile is not JSON: " + err.Error()) // a test would have failed
	}
	return small.String()
}()
