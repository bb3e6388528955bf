package stage

import (
	"encoding/json"
	"strings"
)

// sampleFinder finds the sample that a session answers.
type sampleFinder struct {
	byID map[string]*Sample
	// byFirst groups samples by their first prompt.
	byFirst map[string][]withPrompts
}

type withPrompts struct {
	sample  *Sample
	prompts []string
}

func newSampleFinder(samples []Sample) *sampleFinder {
	f := &sampleFinder{byID: make(map[string]*Sample, len(samples)), byFirst: make(map[string][]withPrompts, len(samples))}
	for i := range samples {
		s := &samples[i]
		f.byID[s.ID] = s
		if all := promptsOf(s); all[0] != "" {
			f.byFirst[all[0]] = append(f.byFirst[all[0]], withPrompts{s, all})
		}
	}
	return f
}

// promptsOf returns the user's messages in each turn of a sample, at least one.
func promptsOf(s *Sample) (all []string) {
	for i := range s.Turns {
		all = append(all, strings.TrimSpace(s.Turns[i].Question))
	}
	if s.Check != nil && s.Check.Turns > 0 && len(all) == 0 {
		var turns [][]struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(s.Messages, &turns) // otherwise only the question is known
		for _, messages := range turns {
			said := ""
			for _, m := range messages {
				if m.Role == "user" && json.Unmarshal(m.Content, &said) != nil {
					said = ""
				}
			}
			all = append(all, strings.TrimSpace(said))
		}
	}
	if len(all) == 0 {
		all = []string{strings.TrimSpace(s.Question)}
	}
	return all
}

// of returns the sample that a session answers, or nil. It prefers the sample with the id of the
// session's task or of the session. Otherwise it returns the sample with the longest common prefix of
// prompts, and among those the one with the closest number of prompts.
func (f *sampleFinder) of(begin *step, steps []step) *Sample {
	for _, id := range []string{begin.Task, begin.Session} {
		if s := f.byID[id]; id != "" && (s != nil || id == begin.Task) {
			return s
		}
	}
	var said []string
	for i := range steps {
		if steps[i].Type == "user" {
			said = append(said, strings.TrimSpace(steps[i].Text))
		}
	}
	if len(said) == 0 {
		return nil
	}
	var best *Sample
	common, distance := 0, 0
	for _, w := range f.byFirst[said[0]] {
		n := 0
		for n < min(len(said), len(w.prompts)) && said[n] == w.prompts[n] {
			n++
		}
		d := max(len(said), len(w.prompts)) - min(len(said), len(w.prompts))
		if best == nil || n > common || n == common && d < distance {
			best, common, distance = w.sample, n, d
		}
	}
	return best
}
