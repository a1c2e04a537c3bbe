package ddb

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// executeStatement runs PartiQL's SELECT * FROM "table"["."index"] [WHERE condition], as a scan. Nothing else of PartiQL.
func (s *Server) executeStatement(body []byte) ([]byte, error) {
	var req statementRequest
	if err := decode(body, &req); err != nil {
		return nil, err
	}
	sel, err := req.parse()
	if err != nil {
		return nil, err
	}
	start, err := decodeToken(req.NextToken)
	if err != nil {
		return nil, err
	}
	scan := readRequest{TableName: sel.table, IndexName: sel.index, Limit: req.Limit, ConsistentRead: req.ConsistentRead, ExclusiveStartKey: start}
	r, p, used, err := s.readPage(&scan, func(r *read, _ *placeholders) error {
		r.filter = sel.where
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := newReply()
	out.items("Items", p.items)
	if p.last != nil {
		out.text("NextToken", base64.StdEncoding.EncodeToString(appendObject(nil, r.lastKey(p))))
	}
	err = out.capacity(used, r.t.name, req.ReturnConsumedCapacity)
	return out.done(), err
}

type statementRequest struct {
	Statement              string
	Parameters             []json.RawMessage
	NextToken              string
	Limit                  *int
	ConsistentRead         bool
	ReturnConsumedCapacity string
}

func (req *statementRequest) parse() (selection, error) {
	p := &parser{parameter: "Statement", src: req.Statement, toks: lex(req.Statement, true), partiql: true,
		ph: &placeholders{}, groupOpen: -1, groupClose: -1}
	for _, raw := range req.Parameters {
		r := reader{b: raw}
		v, err := r.value(0)
		if err != nil {
			return selection{}, err
		}
		p.params = append(p.params, v)
	}
	return p.selection()
}

func decodeToken(token string) (key item, err error) {
	if token == "" {
		return nil, nil
	}
	raw, err := base64.StdEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(raw, &key) != nil {
		return nil, invalid("Invalid NextToken")
	}
	return key, nil
}

// selection is a SELECT statement.
type selection struct {
	table, index string
	where        condition // nil for all
}

func (p *parser) selection() (sel selection, err error) {
	for _, word := range []string{"SELECT", "*", "FROM"} {
		if !p.accept(word) {
			return sel, p.unsupported()
		}
	}
	if sel.table, err = p.sourceName(); err != nil {
		return sel, err
	}
	if p.accept(".") {
		if sel.index, err = p.sourceName(); err != nil {
			return sel, err
		}
	}
	if p.accept("WHERE") {
		e, err := p.or()
		if err != nil {
			return sel, err
		}
		if err := p.wantCondition(e); err != nil {
			return sel, err
		}
		sel.where = e.cond
	}
	return sel, p.finish()
}

func (p *parser) unsupported() error {
	return invalid("Statement not implemented by this emulator, which runs SELECT * FROM \"table\" WHERE ... only: %.80s", p.src)
}

func (p *parser) sourceName() (string, error) {
	t := p.peek()
	switch t.kind {
	case tokQuoted:
		p.pos++
		return unquote(p.textOf(t)), nil
	case tokWord:
		p.pos++
		return p.textOf(t), nil
	}
	return "", p.syntaxError()
}

// unquote takes off a PartiQL token's quotes and halves the doubled ones inside.
func unquote(s string) string {
	quote := s[:1]
	return strings.ReplaceAll(s[1:len(s)-1], quote+quote, quote)
}

// atLiteral says whether a PartiQL literal is next.
func (p *parser) atLiteral() bool {
	t := p.peek()
	return t.kind == tokString || t.kind == tokInteger || p.atSymbol("?") || p.atSymbol("-") || p.atAnyKeyword("TRUE", "FALSE", "NULL")
}

func (p *parser) literal() (value, error) {
	if p.accept("-") {
		if p.peek().kind != tokInteger {
			return nil, p.syntaxError()
		}
		n, err := parseNumber("-" + p.textOf(p.take()))
		return n, err
	}
	t := p.take()
	word := p.textOf(t)
	switch {
	case t.kind == tokString:
		return text(unquote(word)), nil
	case t.kind == tokInteger:
		n, err := parseNumber(word)
		return n, err
	case word == "?":
		if len(p.params) == 0 {
			return nil, invalid("Number of parameters in request and statement don't match.")
		}
		v := p.params[0]
		p.params = p.params[1:]
		return v, nil
	case strings.EqualFold(word, "NULL"):
		return null{}, nil
	}
	return boolean(strings.EqualFold(word, "TRUE")), nil
}
