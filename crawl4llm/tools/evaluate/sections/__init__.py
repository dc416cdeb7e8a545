"""The parts of the report, one module each: figures and tables from a crawl4llm.tools.evaluate.survey.Subject."""
