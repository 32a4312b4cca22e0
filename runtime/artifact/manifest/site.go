package manifest

// A Site is a matrix of a step to which adapters can add a product of low rank: a
// projection of one layer.
type Site struct {
	Weight string     `json:"weight"` // name in the IR
	Index  []int      `json:"index,omitempty"`
	Rows   int        `json:"rows"` // outputs, in this rank's program
	Cols   int        `json:"cols"` // inputs
	Parts  []SitePart `json:"parts"`
}

// A SitePart is a stored matrix of which a site has rows.
type SitePart struct {
	Names   []SiteName `json:"names"` // the name in the model's own files first, then names in other formats
	Out     int        `json:"out"`   // outputs of the stored matrix
	In      int        `json:"in"`    // its inputs
	FromCol int        `json:"from_col,omitempty"`
	Scale   float64    `json:"scale,omitempty"` // factor of the stored numbers; 0: 1
}

// A SiteName is a name of a stored matrix, without the ending ".weight".
type SiteName struct {
	Name  string `json:"name"`
	Order int    `json:"order"` // index in Manifest.RowOrders: which of its rows the site has
}

// A RowRun takes rows From, From+FromStep, … of a stored matrix as rows To, To+ToStep, …
// of a site.
type RowRun struct {
	To       int `json:"to"`
	ToStep   int `json:"to_step"`
	From     int `json:"from"`
	FromStep int `json:"from_step"`
	Count    int `json:"count"`
}
