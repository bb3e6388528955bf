package think

import (
	"cmp"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/launch/native"
)

type arguments struct {
	Mode    string `json:"thinking_mode,omitempty" jsonschema:"Kind of thinking: reasoning, planning, reflection, recalling, brainstorming, exploring, or a word of your own."`
	Focus   string `json:"focus_area,omitempty" jsonschema:"The problem or topic of the thought, in a few words."`
	Thought string `json:"thought_process,omitempty" jsonschema:"The thought in full."`
}

// maxLabel bounds the two labels, which the answer repeats, in bytes.
const maxLabel = 200

// Tools returns the tool think. It keeps no state.
func Tools() []native.Tool {
	return []native.Tool{
		native.Must(native.Typed("think", "Records a thought before acting: reasoning, a plan, a check of earlier work. Use it to analyse a problem step by step. It changes nothing and gets no new information; the answer acknowledges the thought.",
			think, native.Title("Think"), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false))),
	}
}

func think(_ context.Context, _ *native.Call, in arguments) (string, error) {
	switch {
	case len(in.Mode) > maxLabel || len(in.Focus) > maxLabel:
		return "", fmt.Errorf("thinking_mode and focus_area have at most %d bytes each; put the text into thought_process", maxLabel)
	case !utf8.ValidString(in.Mode + in.Focus):
		return "", fmt.Errorf("thinking_mode and focus_area must be UTF-8")
	}
	mode := cmp.Or(in.Mode, "thinking")
	if in.Focus != "" {
		return "[" + mode + "] " + in.Focus + " recorded", nil
	}
	return "[" + mode + "] recorded", nil
}
