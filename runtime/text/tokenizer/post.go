package tokenizer

import "fmt"

// postProcessor places special tokens around the ids of one text. A nil step stands for
// the text itself.
type postProcessor []postStep

type postStep struct {
	before, after []int32
}

func (p postProcessor) apply(ids []int32) []int32 {
	for _, s := range p {
		out := make([]int32, 0, len(s.before)+len(ids)+len(s.after))
		out = append(out, s.before...)
		out = append(out, ids...)
		ids = append(out, s.after...)
	}
	return ids
}

// buildPost returns a post-processor. id returns the id of a token's text.
func buildPost(c *Component, depth int) (postProcessor, error) {
	if c == nil {
		return nil, nil
	}
	if depth > maxComponentDepth {
		return nil, fmt.Errorf("post_processor: sequences nest deeper than %d", maxComponentDepth)
	}
	switch c.Type {
	case "ByteLevel":
		return nil, nil
	case "Sequence":
		var all postProcessor
		for i := range c.Processors {
			p, err := buildPost(&c.Processors[i], depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, p...)
		}
		return all, nil
	case "TemplateProcessing":
		step, err := templateStep(c)
		return postProcessor{step}, err
	case "BertProcessing", "RobertaProcessing":
		if c.Sep == nil || c.Cls == nil {
			return nil, fmt.Errorf("post_processor %s: needs sep and cls", c.Type)
		}
		return postProcessor{{before: []int32{c.Cls.ID}, after: []int32{c.Sep.ID}}}, nil
	}
	return nil, fmt.Errorf("post_processor.type %q is not known", c.Type)
}

func templateStep(c *Component) (postStep, error) {
	var step postStep
	seen := false
	for i, t := range c.Single {
		switch {
		case t.Sequence != nil && !seen:
			seen = true
		case t.SpecialToken != nil:
			token, ok := c.SpecialTokens[t.SpecialToken.ID]
			if !ok {
				return step, fmt.Errorf("post_processor: template token %q is not among special_tokens", t.SpecialToken.ID)
			}
			if seen {
				step.after = append(step.after, token.IDs...)
			} else {
				step.before = append(step.before, token.IDs...)
			}
		default:
			return step, fmt.Errorf("post_processor: template element %d is neither a special token nor the one sequence", i)
		}
	}
	if !seen {
		return step, fmt.Errorf("post_processor: template holds no sequence")
	}
	return step, nil
}
