package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"pintu/internal/dataset"
	"pintu/internal/fault"
	"pintu/internal/idempotency"
)

// putDataset saves a definition as a new version, unless the newest one already says the same.
func (a *api) putDataset(c *call) (reply, error) {
	name := c.PathValue("name")
	if !dataset.ValidName(name) {
		var bad problems
		bad.add("name", "must be 1 to 64 lower-case letters, digits, - and _, the first a letter or digit")
		return reply{}, bad.err()
	}
	def, err := dataset.Parse(c.body)
	if err != nil {
		return reply{}, err
	}
	if len(def.Computed) > 0 {
		if _, err := a.Compute(def); err != nil {
			return reply{}, err
		}
	}
	in, err := c.intent(def)
	if err != nil {
		return reply{}, err
	}
	done, err := a.Datasets.Put(c.ctx(), c.caller, in, name, def)
	if err != nil {
		return reply{}, err
	}
	status := http.StatusOK
	if done.Outcome == idempotency.NewVersion {
		status = http.StatusCreated
	}
	out, err := showDataset(status, done.Version)
	return out.replayed(done.Replayed), err
}

func (a *api) getDataset(c *call) (reply, error) {
	v, err := a.datasetOf(c)
	if err != nil {
		return reply{}, err
	}
	return showDataset(http.StatusOK, v)
}

// datasetOf finds the dataset of the path in its newest version.
func (a *api) datasetOf(c *call) (dataset.Version, error) {
	name := c.PathValue("name")
	if !dataset.ValidName(name) {
		return dataset.Version{}, fault.New(fault.DatasetNotFound, "there is no such dataset")
	}
	return a.Datasets.Get(c.ctx(), c.caller.Tenant, name)
}

func (a *api) getDatasetVersion(c *call) (reply, error) {
	name := c.PathValue("name")
	if !dataset.ValidName(name) {
		return reply{}, fault.New(fault.DatasetNotFound, "there is no such dataset")
	}
	n, err := strconv.Atoi(c.PathValue("n"))
	if err != nil || n < 1 || strconv.Itoa(n) != c.PathValue("n") {
		return reply{}, fault.New(fault.VersionNotFound, "versions are numbered from 1")
	}
	v, err := a.Datasets.GetVersion(c.ctx(), c.caller.Tenant, name, n)
	if err != nil {
		return reply{}, err
	}
	return showDataset(http.StatusOK, v)
}

// showDataset writes name, version and creation time before the members of the definition.
func showDataset(status int, v dataset.Version) (reply, error) {
	head, err := encode(struct {
		Name      string  `json:"name"`
		Version   int     `json:"version"`
		CreatedAt *string `json:"created_at"`
	}{v.Name, v.Number, stamp(v.CreatedAt)})
	if err != nil {
		return reply{}, err
	}
	members, ok := bytes.CutPrefix(v.Definition.Canonical(), []byte("{"))
	if !ok {
		return reply{}, fmt.Errorf("show dataset %s: its definition is no object", v.Name)
	}
	body := append(bytes.TrimSuffix(head, []byte("}")), ',')
	return reply{status: status, body: append(body, members...)}, nil
}
