package sandbox

import (
	"bytes"
	_ "embed" // for the profile
	"encoding/json"
)

// The profile is Moby's with less: see profile_linux_test.go, which says what was
// taken away and writes the file. It is passed with every container, so that the
// age of the engine does not decide what its default lets through.
//
//go:embed profile.json
var profileFile []byte

// profile is the file without its white space: it travels with each container.
var profile = func() string {
	var small bytes.Buffer
	if err := json.Compact(&small, profileFile); err != nil {
		panic("the embedded seccomp profile is not JSON: " + err.Error()) // the tests would have said so
	}
	return small.String()
}()
