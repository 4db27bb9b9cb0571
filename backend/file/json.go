package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// splitJSON finds the documents of a JSON file, one after the other.
func splitJSON(content []byte) (docs []document, err error) {
	lineAt := func(offset int) int {
		return 1 + bytes.Count(content[:max(0, min(offset, len(content)))], []byte("\n"))
	}
	d := json.NewDecoder(bytes.NewReader(content))
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		var syntax *json.SyntaxError
		switch {
		case err == io.EOF:
			return docs, nil
		case errors.As(err, &syntax):
			return nil, atLine(lineAt(int(syntax.Offset)-1), ErrSyntax, "%v", err)
		case err != nil: // the file ends in the middle
			return nil, atLine(lineAt(len(content)), ErrSyntax, "%v", err)
		}
		start := int(d.InputOffset()) - len(raw)
		if string(raw) == "null" {
			continue
		}
		docs = append(docs, document{
			json:   raw,
			line:   lineAt(start),
			lineAt: func(offset int) int { return lineAt(start + offset) },
		})
	}
}
