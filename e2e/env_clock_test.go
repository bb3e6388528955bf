package e2e

import (
	"strings"
	"testing"
)

// clockFiles is an environment with a fixed clock, and one without.
var clockFiles = map[string]string{
	"env.yaml": `
environments:
  past:
    tools: [datetime/*]
    isolation: session
    clock: 2020-02-29T23:30:00+02:00
    tasks_file: tasks.jsonl
    reward: {weights: {execution: 1}}
  present:
    tools: [datetime/*]
    isolation: session
    tasks_file: tasks.jsonl
    reward: {weights: {execution: 1}}
`,
	"tasks.jsonl": `{"question":"What time is it?","expected":["now"]}
`,
}

// clockAnswers returns two answers of datetime in each of two episodes of an environment.
func clockAnswers(t *testing.T, e *environments, environment string) []string {
	t.Helper()
	var told []string
	for range 2 {
		session := e.post(t, "/reset", map[string]any{"environment": environment}).Metadata.SessionID
		for range 2 {
			r := e.step(t, session, "now", map[string]any{})
			if r.Observation.Result == nil {
				t.Fatalf("now answers %+v", r)
			}
			told = append(told, string(r.Observation.Result.Data))
		}
	}
	return told
}

// TestDatetimeReturnsTheTimeOfTheEpisode also restarts the environments, and checks that the time of
// an environment without a clock differs.
func TestDatetimeReturnsTheTimeOfTheEpisode(t *testing.T) {
	const want = `"2020-02-29T21:30:00+00:00"`
	e := startEnv(t, "", clockFiles)
	if present := clockAnswers(t, e, "present"); strings.Contains(strings.Join(present, " "), "2020-") {
		t.Errorf("without a clock the times are %v", present)
	}
	told := clockAnswers(t, e, "past")
	e.stop(t)
	for _, now := range append(told, clockAnswers(t, startEnv(t, "", clockFiles), "past")...) {
		if now != want {
			t.Errorf("datetime tells %s, want %s", now, want)
		}
	}
}
