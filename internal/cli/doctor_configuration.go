package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	callyard "github.com/callyard/callyard/clients/go"
	"github.com/callyard/callyard/pkg/schema"
)

// configuration checks the files that processes reload, and compares the processes.
func (x *examination) configuration(ctx context.Context) {
	const at = "configuration"
	var report callyard.ConfigurationStatus
	if _, err := x.look(ctx, x.c, x.c.api.GetConfiguration, &report); err != nil {
		if exitCode(err) == exitRefused {
			x.note(at, "the version of this front door does not report its configuration")
			return
		}
		x.fault(at, oneLine(err.Error()), "check the log of the front door")
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
		if way, ok := warrantParts[string(d.Part)]; ok {
			x.untrusted(report.Processes, &d, way)
			continue
		}
		what := map[string]string{"policy": "the policy", "keys": "the API keys", "servers": "the entry of server " + deref(d.Server)}[string(d.Part)]
		var sides []string
		for _, v := range d.Versions {
			sides = append(sides, brief(v.Version)+" at "+strings.Join(v.Processes, ", "))
		}
		x.fault(at, "processes use different versions of "+cmp.Or(what, string(d.Part))+": "+strings.Join(sides, "; "),
			"use the same file for all of them; after an edit, check whether a process refused it or has not read it (a ConfigMap takes up to two minutes to update; with subPath it never updates)")
	}
	if x.faults() > faults {
		return
	}
	said := fmt.Sprintf("%d processes, the latest version of their files is in force", len(report.Processes))
	for _, part := range report.Processes[:min(1, len(report.Processes))] {
		for _, p := range part.Parts {
			said += "; " + string(p.Part) + " " + brief(p.Version) + " since " + p.Since.UTC().Format(time.RFC3339)
		}
	}
	x.ok(at, said)
	if silent > 0 && silent < len(report.Processes) {
		x.note(at, fmt.Sprintf("%d of %d processes have no policy, servers file or API keys to compare", silent, len(report.Processes)))
	}
}

// warrantParts maps the parts for the keys of warrants to the decision that they prove.
var warrantParts = map[string]string{"people_keys": "people approve", "caller_keys": "their callers confirm"}

// untrusted adds a fault for workers that do not trust the key with which a process signs approved
// calls, or for processes that have no such key.
func (x *examination) untrusted(processes []callyard.ConfiguredProcess, d *callyard.ConfigurationDisagreement, way string) {
	var unsigned, signers, workers []string
	for _, v := range d.Versions {
		for _, id := range v.Processes {
			i := slices.IndexFunc(processes, func(p callyard.ConfiguredProcess) bool { return p.ID == id })
			switch {
			case i >= 0 && processes[i].Role == "worker":
				workers = append(workers, id+" trusts "+v.Version)
			case i >= 0 && v.Version == schema.NoSigner:
				unsigned = append(unsigned, string(processes[i].Role)+" "+id)
			default:
				signers = append(signers, id+" signs with "+v.Version)
			}
		}
	}
	if len(unsigned) > 0 {
		x.fault("warrants", "workers refuse the calls that "+way+", because "+strings.Join(unsigned, ", ")+" has no key to sign them with: "+strings.Join(workers, "; "),
			"set warrants.key_file there to a private key whose public key is in warrants."+string(d.Part)+" of these workers (callyard keys warrant makes a pair), and restart it (docs/how-to/deployment.md)")
		return
	}
	x.fault("warrants", "workers refuse the calls that "+way+", because they do not trust the key that signs them: "+strings.Join(slices.Concat(signers, workers), "; "),
		"add the public key of the signer to warrants."+string(d.Part)+" of these workers and restart them (docs/how-to/deployment.md)")
}

// refusedEdit adds a fault for a part whose last edit was refused.
func (x *examination) refusedEdit(process string, p *callyard.ConfigurationPart) {
	if deref(p.Error) == "" && p.Outcome != "refused" {
		return
	}
	x.fault(process, fmt.Sprintf("the last edit of its %s (%s) is not in force; version %s of %s is: %s", p.Part, p.Tried.UTC().Format(time.RFC3339), brief(p.Version), p.Since.UTC().Format(time.RFC3339), oneLine(deref(p.Error))),
		"repair the file (callyard config check lists all its faults); it is reloaded automatically")
}

// briefVersion is the length of a shortened version, long enough to distinguish versions.
const briefVersion = 12

func brief(version string) string {
	version = strings.TrimPrefix(version, "sha256:")
	return version[:min(len(version), briefVersion)]
}
