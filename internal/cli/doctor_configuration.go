package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
)

// configuration looks at the files that processes read again, and compares the processes.
func (x *examination) configuration(ctx context.Context) {
	const at = "configuration"
	var report callyard.ConfigurationStatus
	if _, err := x.look(ctx, x.c, x.c.api.GetConfiguration, &report); err != nil {
		if exitCode(err) == exitRefused {
			x.note(at, "this front door is of a version that does not tell which configuration it goes by")
			return
		}
		x.fault(at, oneLine(err.Error()), "see the log of the front door")
		return
	}
	faults, silent := x.faults(), 0
	for _, p := range report.Processes {
		if len(p.Parts) == 0 {
			silent++
		}
		for _, part := range p.Parts {
			x.refusedEdit(string(p.Role)+" "+p.ID, &part)
		}
	}
	for _, d := range report.Disagreements {
		what := map[string]string{"policy": "the policy", "keys": "the API keys", "servers": "the entry of server " + deref(d.Server)}[string(d.Part)]
		var sides []string
		for _, v := range d.Versions {
			sides = append(sides, brief(v.Version)+" at "+strings.Join(v.Processes, ", "))
		}
		x.fault(at, "processes go by different versions of "+cmp.Or(what, string(d.Part))+": "+strings.Join(sides, "; "),
			"give all of them the same file; after an edit, see whether one refused it or has not seen it (a ConfigMap takes up to two minutes; one mounted with subPath is never updated)")
	}
	if x.faults() > faults {
		return
	}
	said := fmt.Sprintf("%d processes, every last edit of their files is in force", len(report.Processes))
	for _, part := range report.Processes[:min(1, len(report.Processes))] {
		for _, p := range part.Parts {
			said += "; " + string(p.Part) + " " + brief(p.Version) + " since " + p.Since.UTC().Format(time.RFC3339)
		}
	}
	x.ok(at, said)
	if silent > 0 && silent < len(report.Processes) {
		x.note(at, fmt.Sprintf("%d of the processes read no file again", silent))
	}
}

// refusedEdit is a fault for a part whose last edit is not in force.
func (x *examination) refusedEdit(process string, p *callyard.ConfigurationPart) {
	if deref(p.Error) == "" && p.Outcome != "refused" {
		return
	}
	x.fault(process, fmt.Sprintf("the last edit of its %s (%s) is not in force; version %s of %s is: %s", p.Part, p.Tried.UTC().Format(time.RFC3339), brief(p.Version), p.Since.UTC().Format(time.RFC3339), oneLine(deref(p.Error))),
		"repair the file (callyard config check lists all its faults); it is read again by itself")
}

// briefVersion is enough of a version to tell it from another.
const briefVersion = 12

func brief(version string) string {
	version = strings.TrimPrefix(version, "sha256:")
	return version[:min(len(version), briefVersion)]
}
