package cli

import (
	"fmt"

	"github.com/callyard/callyard/internal/kit/visible"
)

// finding is one result of an examination.
type finding struct {
	Level string `json:"level"` // ok, note, fault
	About string `json:"about"`
	Says  string `json:"says"`
	Fix   string `json:"fix,omitempty"`
}

const (
	levelOK    = "ok"
	levelNote  = "note"
	levelFault = "fault"
)

func (x *examination) ok(about, says string) {
	x.findings = append(x.findings, finding{levelOK, about, says, ""})
}

func (x *examination) note(about, says string) {
	x.findings = append(x.findings, finding{levelNote, about, says, ""})
}

func (x *examination) fault(about, says, fix string) {
	x.findings = append(x.findings, finding{levelFault, about, says, fix})
}

func (x *examination) faults() (n int) {
	for _, f := range x.findings {
		if f.Level == levelFault {
			n++
		}
	}
	return n
}

// printFindings prints the findings. If there are faults, it returns an error with exit code 1.
func (x *examination) printFindings() error {
	n := x.faults()
	if x.out.structured() {
		if err := x.out.value(map[string]any{"faults": n, "findings": x.findings}); err != nil {
			return err
		}
	} else if err := x.printForPeople(n); err != nil {
		return err
	}
	if n > 0 {
		return ended(exitToolError)
	}
	return nil
}

func (x *examination) printForPeople(faults int) error {
	out := x.out
	colours := map[string]colour{levelOK: green, levelNote: yellow, levelFault: red}
	for _, f := range x.findings {
		level := fmt.Sprintf("%-5s", f.Level)
		line := out.sentences(level+"  "+visible.Terminal(f.About+": "+f.Says), len(level)+2)
		if f.Fix != "" {
			line += "\n" + out.sentences("       fix: "+visible.Terminal(f.Fix), len("fix: "))
		}
		if err := out.text(out.paint(colours[f.Level], level) + line[len(level):] + "\n"); err != nil {
			return err
		}
	}
	if faults == 0 {
		return out.text("\nNo faults.\n")
	}
	return out.text("\n" + count(faults, "fault") + ".\n")
}
