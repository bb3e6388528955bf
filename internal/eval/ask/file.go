package ask

import (
	"errors"
	"fmt"
	"os"

	"github.com/callyard/callyard/internal/eval"
	"github.com/callyard/callyard/internal/eval/stage"
	"github.com/callyard/callyard/internal/kit/jsonlog"
)

// key identifies an answer.
type key struct {
	id    string
	trial int
}

// open opens a file of responses, locks it against other processes, and reads it.
func open(path string) (*jsonlog.File, map[key]*eval.Response, error) {
	file, _, err := jsonlog.Open(path, os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	read, err := stage.ReadResponses(path)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	have := make(map[key]*eval.Response, len(read))
	for i := range read {
		have[key{read[i].ID, read[i].Trial}] = &read[i].Response
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
