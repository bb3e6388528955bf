package stage

import (
	"encoding/json"
	"strings"

	"github.com/callyard/callyard/internal/eval"
)

// Faults of an answer to tau2.
const (
	tauState       = "database"
	tauCommunicate = "communicate"
)

// tauVerdict returns the reward of tau2 for the bases DB and COMMUNICATE: the state must equal that
// after the labelled actions, and the text must contain everything that the user should be told. Like
// tau2, it compares texts without letter case and commas. It returns nil if the calls were not run,
// or if their results are not meaningful.
func tauVerdict(check *eval.Check, r *eval.Response, ran *eval.Execution) *eval.Verdict {
	if ran == nil || ran.State == nil {
		return nil
	}
	if *ran.State != 1 {
		return &eval.Verdict{Error: tauState}
	}
	var told []string
	if json.Unmarshal(check.Answers, &told) != nil {
		told = nil
	}
	text := strings.ReplaceAll(strings.ToLower(r.Text), ",", "")
	for _, info := range told {
		if !strings.Contains(text, strings.ToLower(info)) {
			return &eval.Verdict{Error: tauCommunicate}
		}
	}
	return &eval.Verdict{Valid: true}
}
