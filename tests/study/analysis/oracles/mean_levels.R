# Writes mean_levels.json: mean levels of two of the models of ordinal.json by R's emmeans (mode mean.class: random effects of 0),
# with the contrast of the last with the first.
# Run in this folder:  Rscript mean_levels.R   (R 4.2.2, ordinal 2022.11.16, emmeans 1.8.4)
suppressMessages({library(ordinal); library(emmeans); library(jsonlite)})
cases <- fromJSON("ordinal.json", simplifyDataFrame = FALSE)
names(cases) <- sapply(cases, function(case) case$name)
estimate <- function(name, asked) {
  case <- cases[[name]]
  rows <- as.data.frame(case$data)
  for (one in names(case$levels)) rows[[one]] <- factor(rows[[one]], case$levels[[one]])
  response <- all.vars(as.formula(case$formula))[1]
  rows[[response]] <- factor(rows[[response]])
  model <- clmm(as.formula(case$formula), rows, control = clmm.control(grtol = 1e-8))
  means <- emmeans(model, as.formula(asked), mode = "mean.class")
  shown <- as.data.frame(means)
  compared <- as.data.frame(contrast(means, list(last = c(-1, rep(0, nrow(shown) - 2), 1))))
  list(name = name, asked = asked, mean = shown$mean.class, se = shown$SE, difference = compared$estimate,
       difference_se = compared$SE)
}
writeLines(toJSON(list(estimate("wine", "~ temp"), estimate("agreement", "~ condition")), digits = 10, auto_unbox = TRUE,
                  pretty = TRUE), "mean_levels.json")
