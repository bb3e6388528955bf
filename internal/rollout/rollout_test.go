package rollout

import (
	"encoding/json"
	"testing"

	"go.uber.org/goleak"

	"github.com/callyard/callyard/internal/episode"
	"github.com/callyard/callyard/pkg/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestObservationJSON(t *testing.T) {
	one := 1.0
	for name, test := range map[string]struct {
		seen *episode.Observation
		err  error
		want string
	}{
		"a result with its reward": {
			&episode.Observation{Result: json.RawMessage(`{"content":[{"type":"text","text":"<a>"}],"isError":false}`), Reward: &one, Done: true}, nil,
			`{"ok":true,"output":{"blocks":[{"detail":null,"text":"\u003ca\u003e","type":"text"}],"finished":true,"metadata":null,"reward":1}}`,
		},
		"a step before the end has no reward either": {
			&episode.Observation{Result: json.RawMessage(`{"content":[],"isError":false}`), Reward: new(float64)}, nil,
			`{"ok":true,"output":{"blocks":[],"finished":false,"metadata":null,"reward":null}}`,
		},
		"a masked episode has no reward": {
			&episode.Observation{Error: &episode.StepError{Type: episode.ErrorTransport, Message: "lost"}, Done: true, Masked: true, FailureKind: episode.FailureWorkerLost}, nil,
			`{"ok":true,"output":{"blocks":[{"detail":null,"text":"lost","type":"text"}],"finished":true,"metadata":{"error_type":"transport_error","failure_kind":"worker-lost","masked":true,"retryable":false},"reward":null}}`,
		},
		"an episode that has ended": {nil, schema.Errorf(schema.KindConflict, "ended"), `{"error":"ended","ok":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(outputOf(test.seen, test.err)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestToolResultJSONHasDataForClients(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"}]}`:                      `{"content":[{"type":"text","text":"a"}],"data":"a","is_error":false,"structured_content":null}`,
		`{"content":[],"structuredContent":{"n":12345678901234567890}}`: `{"content":[],"data":{"n":12345678901234567890},"is_error":false,"structured_content":{"n":12345678901234567890}}`,
	} {
		got, err := json.Marshal(resultOf(&episode.Observation{Result: json.RawMessage(result)}))
		if err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}
