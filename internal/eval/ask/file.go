package ask

import (
	"errors"
	"fmt"
	"os"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/kit/jsonlog"
)

// open opens a file of responses, locks it against other processes, and reads it.
func open(path string) (*jsonlog.File, map[stage.AnswerKey]*eval.Response, error) {
	file, _, err := jsonlog.Open(path, os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	read, err := stage.ReadResponses(path)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	have := make(map[stage.AnswerKey]*eval.Response, len(read))
	for i := range read {
		have[stage.AnswerKey{ID: read[i].ID, Trial: read[i].Trial}] = &read[i].Response
	}
	return file, have, nil
}

// add appends an answer.
func add(file *jsonlog.File, r *eval.Response) error {
	if err := file.Append(r); err != nil {
		return fmt.Errorf("writing an answer: %w", err)
	}
	return nil
}
