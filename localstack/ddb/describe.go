package ddb

// tableDescription is what DescribeTable and its kin return.
type tableDescription struct {
	TableName                 string
	TableArn                  string
	TableId                   string
	TableStatus               string
	CreationDateTime          float64 // Unix seconds
	KeySchema                 []keyElement
	AttributeDefinitions      []attributeDef
	ItemCount                 int
	TableSizeBytes            int
	ProvisionedThroughput     throughputDescription
	BillingModeSummary        *billingSummary    `json:",omitempty"`
	GlobalSecondaryIndexes    []indexDescription `json:",omitempty"`
	StreamSpecification       *streamSpec        `json:",omitempty"`
	LatestStreamArn           string             `json:",omitempty"`
	LatestStreamLabel         string             `json:",omitempty"`
	DeletionProtectionEnabled bool
}

type throughputDescription struct {
	NumberOfDecreasesToday int
	throughput
}

type billingSummary struct{ BillingMode string }

type indexDescription struct {
	IndexName             string
	IndexArn              string
	IndexStatus           string
	KeySchema             []keyElement
	Projection            projection
	ItemCount             int
	IndexSizeBytes        int
	ProvisionedThroughput throughputDescription
}

// describe reports the table; item counts and sizes are exact, where AWS updates them every six hours. The caller holds t.mu.
func (t *table) describe(status string) tableDescription {
	def := t.def
	d := tableDescription{
		TableName: def.Name, TableArn: arnPrefix + def.Name, TableId: def.ID, TableStatus: status,
		CreationDateTime: float64(def.Created.UnixMilli()) / 1000,
		KeySchema:        def.KeySchema, AttributeDefinitions: def.Attributes,
		ItemCount: t.rows.len(), TableSizeBytes: t.rows.bytes,
		ProvisionedThroughput:     describeThroughput(def.Throughput),
		StreamSpecification:       def.Stream,
		DeletionProtectionEnabled: def.DeletionProtection,
	}
	if def.BillingMode == "PAY_PER_REQUEST" {
		d.BillingModeSummary = &billingSummary{def.BillingMode}
	}
	if def.StreamLabel != "" {
		d.LatestStreamLabel = def.StreamLabel
		d.LatestStreamArn = d.TableArn + "/stream/" + def.StreamLabel
	}
	for i, one := range def.Indexes {
		rows := t.indexes[i].rows
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, indexDescription{
			IndexName: one.Name, IndexArn: d.TableArn + "/index/" + one.Name, IndexStatus: "ACTIVE",
			KeySchema: one.KeySchema, Projection: one.Projection, ItemCount: rows.len(), IndexSizeBytes: rows.bytes,
			ProvisionedThroughput: describeThroughput(one.Throughput),
		})
	}
	return d
}

func describeThroughput(t *throughput) throughputDescription {
	if t == nil {
		return throughputDescription{}
	}
	return throughputDescription{throughput: *t}
}
