package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callyard/callyard/internal/config"
	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/internal/launch/sandbox"
	"github.com/callyard/callyard/internal/setup"
	"github.com/callyard/callyard/internal/worker"
	"github.com/callyard/callyard/pkg/schema"
)

// checkIsolation returns an error if the environment uses the server and the server cannot provide the
// environment's isolation for each episode.
func checkIsolation(e *episode.Environment, s *worker.Served) error {
	spec := s.Session.Spec
	switch {
	case !e.Uses(string(spec.ID)):
	case e.Isolation == episode.IsolationSession:
		if why := e.NoSessions(spec.Type); why != "" {
			return fmt.Errorf("the environment %s has isolation session, and the server %q %s", e.Name(), spec.ID, why)
		}
	case e.Isolation == episode.IsolationSandbox:
		if why := noContainer(s.Sandbox); why != "" {
			return fmt.Errorf("the environment %s has isolation sandbox, and the server %q %s", e.Name(), spec.ID, why)
		}
	case e.Isolation == episode.IsolationProcess && (spec.Type != config.TypeStdio || s.Sandbox != nil && s.Sandbox.Only):
		return fmt.Errorf("the environment %s has isolation process, and the server %q is no process that this worker can start for each episode; use isolation session or shared", e.Name(), spec.ID)
	}
	return nil
}

// noContainer returns the reason why a server cannot run in a container for each episode, or "" if
// it can.
func noContainer(b *worker.Sandbox) string {
	switch {
	case b == nil:
		return "has no container; set its image in docker.image, or use isolation process"
	case b.Isolation != schema.IsolationContainer:
		return "runs in a sandbox of bubblewrap, which cannot be kept for an episode; set its image in docker.image, or use isolation process"
	case b.Fault != nil:
		return "has a container that cannot be used: " + b.Fault.Error()
	}
	if _, err := b.Spec.InState(sandbox.State{Dir: "/"}); err != nil {
		return "cannot have a state directory in its container: " + schema.AsError(err).Detail
	}
	return ""
}

// checkTrainers returns a fault if a configuration that requires access tokens would let trainers in
// without one: callyard env accepts the API keys of the configuration, and without them it is open.
func checkTrainers(cfg *setup.Config) []config.Fault {
	if len(cfg.FrontDoor.Issuers) == 0 || len(cfg.FrontDoor.Keys) > 0 {
		return nil
	}
	return []config.Fault{config.Faultf("front_door.issuers", "is set and front_door.keys is not, but callyard env accepts API keys of the configuration only, so everybody could use it: add a key for the trainers.")}
}

// checkEnvironments reads the environments file of the command, if any, and checks it against the
// servers. It returns a line for each environment, and the faults.
func checkEnvironments(cmd *cobra.Command, cfg *setup.Config, served []worker.Served) (lines string, faults []config.Fault, err error) {
	path, err := cmd.Flags().GetString("environments")
	if err != nil || path == "" {
		return "", nil, err
	}
	file, err := episode.Load(path)
	if found, ok := errors.AsType[*config.Faults](err); ok {
		return "", found.List, nil
	}
	if err != nil {
		return "", nil, err
	}
	var b strings.Builder
	if err := sayEnvironments(&b, file); err != nil {
		return "", nil, err
	}
	faults = checkTrainers(cfg)
	for _, e := range file.Sorted() {
		used := 0
		for i := range served {
			if !e.Uses(string(served[i].Session.Spec.ID)) {
				continue
			}
			used++
			if err := checkIsolation(e, &served[i]); err != nil {
				faults = append(faults, config.Fault{Where: path, Message: err.Error() + "."})
			}
		}
		if used == 0 {
			faults = append(faults, config.Fault{Where: path, Message: fmt.Sprintf("the environment %s uses no server of the servers file; see its tools.", e.Name())})
		}
	}
	for line := range strings.Lines(b.String()) {
		lines += "# environment " + line
	}
	return lines, faults, nil
}
