package grammar

func (w *schemaWriter) uniqueArray(a *arrayShape) part {
	return w.fail(a.path, "uniqueItems is not supported")
}
